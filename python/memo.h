// SPDX-License-Identifier: MIT
// A memory of calls with tensors of PyTorch. What Python has found out about a call is kept by all
// that it depends on: for each tensor its shape, strides, type and whether it wants a gradient; the
// other arguments; and the modes of PyTorch. A later call like it is then recognised without a
// single line of Python. The fields of a tensor are read by DLPack's C exchange (dlpack.h, 1.3).

enum { PY_KEY_WORDS = 160, PY_CPU = 1, PY_STRING = 24 };

// The table of functions of a library of arrays, up to the last one that is called here.
struct py_exchange {
    uint32_t major, minor;
    void *previous, *allocate, *from_python, *to_python;
    int (*read)(void *object, struct py_dlpack *tensor); // borrows; -1: an exception is set
};

// What all memories have in common. It is set once.
static struct {
    const struct py_exchange *exchange; // NULL: PyTorch has none
    PyObject *tensor, *parameter;       // types: no subclasses of them are read
    // Tuples. Modes are functions without arguments, or pairs of them, of which the second one is
    // asked where the first one returns True; the first mode says whether gradients are recorded.
    // Variables are (dict, name).
    PyObject *modes, *variables;
    PyObject *requires_grad, *is_neg; // names
} py_torch;

struct py_key {
    bool recorded; // gradients are recorded where a tensor wants one
    size_t n;
    int64_t word[PY_KEY_WORDS];
};

// Each kind of argument begins with a word of its own, so that no two lists of arguments have the
// same words. The functions that add words return false where a call is not remembered; then an
// exception may be set.
enum { PY_OBJECT = 1, PY_NUMBER, PY_TEXT, PY_SEQUENCE, PY_TENSOR };

static bool py_key_add(struct py_key *key, int64_t word)
{
    if (key->n == PY_KEY_WORDS) return false;
    key->word[key->n++] = word;
    return true;
}

static bool py_key_add_all(struct py_key *key, const int64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!py_key_add(key, words[i])) return false;
    return true;
}

// Whether a result of Python is True. The reference is given up.
static bool py_is_true(PyObject *result)
{
    if (!result) PyErr_Clear();
    Py_XDECREF(result);
    return result == Py_True;
}

static bool py_key_argument(struct py_key *key, PyObject *argument);

// Adds the value of a mode or an attribute: numbers, or an object that lives as long as the
// process. The reference is given up; it may be NULL.
static bool py_key_value(struct py_key *key, PyObject *value)
{
    const bool numbers = value && (PyLong_CheckExact(value) || PyTuple_Check(value));
    const bool added =
        numbers ? py_key_argument(key, value) : value && py_key_add(key, (intptr_t)value);
    Py_XDECREF(value);
    return added;
}

// Type, shape and strides of a tensor where PyTorch has no exchange, as before version 2.10.
static bool py_key_attributes(struct py_key *key, PyObject *t)
{
    struct py_key address; // no part of the key, but only tensors with strides have it
    address.n = 0;
    return py_is_true(PyObject_GetAttrString(t, "is_cpu")) &&
           py_key_value(&address, PyObject_CallMethod(t, "data_ptr", NULL)) &&
           py_key_value(key, PyObject_GetAttrString(t, "dtype")) &&
           py_key_value(key, PyObject_GetAttrString(t, "shape")) &&
           py_key_value(key, PyObject_CallMethod(t, "stride", NULL));
}

// The same by the exchange, in a tenth of the time.
static bool py_key_exchange(struct py_key *key, PyObject *t)
{
    struct py_dlpack read;
    return !py_torch.exchange->read(t, &read) && read.device_type == PY_CPU && read.strides &&
           py_key_add(key, read.code + 256 * read.bits + 65536 * read.lanes) &&
           py_key_add(key, read.ndim) && py_key_add_all(key, read.shape, (size_t)read.ndim) &&
           py_key_add_all(key, read.strides, (size_t)read.ndim);
}

// False: a tensor of another device, without strides, or with a bit that negates its values.
static bool py_key_tensor(struct py_key *key, PyObject *t)
{
    if (py_is_true(PyObject_CallMethodObjArgs(t, py_torch.is_neg, NULL))) return false;
    const bool wants = key->recorded && py_is_true(PyObject_GetAttr(t, py_torch.requires_grad));
    const bool is_parameter = (PyObject *)Py_TYPE(t) == py_torch.parameter;
    return py_key_add(key, PY_TENSOR) && py_key_add(key, wants + 2 * is_parameter) &&
           (py_torch.exchange ? py_key_exchange(key, t) : py_key_attributes(key, t));
}

static bool py_key_number(struct py_key *key, PyObject *number)
{
    const int64_t value = PyLong_AsLongLong(number);
    return (value != -1 || !PyErr_Occurred()) && py_key_add(key, PY_NUMBER) &&
           py_key_add(key, value);
}

static bool py_key_text(struct py_key *key, PyObject *text)
{
    Py_ssize_t n;
    int64_t words[PY_STRING / sizeof(int64_t)] = {0};
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &n);
    if (!bytes || n > PY_STRING) return false;
    memcpy(words, bytes, (size_t)n);
    return py_key_add(key, PY_TEXT) && py_key_add_all(key, words, PY_STRING / sizeof(int64_t));
}

static bool py_key_sequence(struct py_key *key, PyObject *sequence)
{
    const Py_ssize_t n = PySequence_Size(sequence);
    bool added = py_key_add(key, PY_SEQUENCE) && py_key_add(key, n);
    for (Py_ssize_t i = 0; added && i < n; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        added = item && py_key_argument(key, item);
        Py_XDECREF(item);
    }
    return added;
}

// False: something that is not remembered. Objects such as None, True and a type of samples live as
// long as the process.
static bool py_key_argument(struct py_key *key, PyObject *argument)
{
    PyObject *type = (PyObject *)Py_TYPE(argument);
    if (type == py_torch.tensor || type == py_torch.parameter) return py_key_tensor(key, argument);
    if (argument == Py_None || argument == Py_True || argument == Py_False)
        return py_key_add(key, PY_OBJECT) && py_key_add(key, (intptr_t)argument);
    if (PyLong_CheckExact(argument)) return py_key_number(key, argument);
    if (PyTuple_Check(argument) || PyList_Check(argument)) return py_key_sequence(key, argument);
    return PyUnicode_CheckExact(argument) && py_key_text(key, argument);
}

static bool py_key_mode(struct py_key *key, PyObject *mode)
{
    const bool is_pair = PyTuple_Check(mode);
    PyObject *value = PyObject_CallNoArgs(is_pair ? PyTuple_GetItem(mode, 0) : mode);
    const bool is_more = is_pair && value == Py_True;
    return py_key_value(key, value) && (!is_more || py_key_mode(key, PyTuple_GetItem(mode, 1)));
}

// The first `modes` modes, and all variables.
static bool py_key_modes(struct py_key *key, Py_ssize_t modes)
{
    bool added = true;
    for (Py_ssize_t i = 0; added && i < modes; i++)
        added = py_key_mode(key, PyTuple_GetItem(py_torch.modes, i));
    key->recorded = added && key->word[0] == (intptr_t)Py_True;
    for (Py_ssize_t i = 0; added && i < PyTuple_Size(py_torch.variables); i++) {
        PyObject *variable = PyTuple_GetItem(py_torch.variables, i);
        added = py_key_value(key, Py_XNewRef(PyDict_GetItemWithError(
                                      PyTuple_GetItem(variable, 0), PyTuple_GetItem(variable, 1))));
    }
    return added;
}

struct py_memo {
    PyObject_HEAD PyObject *calls; // a dict of what is kept for each call, by the words of its key
    unsigned most;                 // calls; then it begins anew
    Py_ssize_t modes;              // so many of the modes matter
};

// The key of a call; NULL: it is not remembered.
static PyObject *py_key_of_call(const struct py_memo *memo, PyObject *const *arguments,
                                Py_ssize_t n)
{
    struct py_key key;
    key.n = 0;
    bool added = py_key_modes(&key, memo->modes);
    for (Py_ssize_t i = 0; added && i < n; i++) added = py_key_argument(&key, arguments[i]);
    const Py_ssize_t bytes = (Py_ssize_t)(key.n * sizeof *key.word);
    return added ? PyBytes_FromStringAndSize((const char *)key.word, bytes) : NULL;
}

// find(*arguments): what has been kept for such a call, or None.
static PyObject *py_memo_find(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
    const struct py_memo *memo = (struct py_memo *)self;
    PyObject *key = py_key_of_call(memo, arguments, n);
    PyObject *found = key ? PyObject_GetItem(memo->calls, key) : NULL;
    Py_XDECREF(key);
    if (!found) PyErr_Clear();
    return found ? found : Py_NewRef(Py_None);
}

// keep(value, *arguments): keeps a value for such calls.
static PyObject *py_memo_keep(PyObject *self, PyObject *const *arguments, Py_ssize_t n)
{
    const struct py_memo *memo = (struct py_memo *)self;
    PyObject *key = n ? py_key_of_call(memo, arguments + 1, n - 1) : NULL;
    if (!key) PyErr_Clear();
    if (key && PyDict_Size(memo->calls) >= memo->most) PyDict_Clear(memo->calls);
    const int failed = key && PyDict_SetItem(memo->calls, key, *arguments);
    Py_XDECREF(key);
    return failed ? NULL : Py_NewRef(Py_None);
}

// clear(): forgets all calls.
static PyObject *py_memo_clear(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyDict_Clear(((struct py_memo *)self)->calls);
    return Py_NewRef(Py_None);
}

// Memo(calls, modes): a memory of at most that many calls, 1 to 2^20. By default all modes matter,
// else the first ones: 1 up to all.
static PyObject *py_memo_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    unsigned calls;
    const Py_ssize_t all = PyTuple_Size(py_torch.modes);
    Py_ssize_t modes = all;
    if (names || !PyArg_ParseTuple(arguments, "I|n:Memo", &calls, &modes) || calls < 1 ||
        calls > 1 << 20 || modes < 1 || modes > all)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_ValueError, "calls: 1 to 2**20; modes: 1 to %zd", all);
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct py_memo *memo = (struct py_memo *)allocate(type, 0);
    if (!memo) return NULL;
    memo->most = calls;
    memo->modes = modes;
    memo->calls = PyDict_New();
    if (memo->calls) return (PyObject *)memo;
    Py_DECREF(memo);
    return NULL;
}

static void py_memo_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((struct py_memo *)self)->calls);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// The type Memo. `given` is a tuple: PyTorch's capsule of the exchange or None, and the objects of
// py_torch from `tensor` to `variables`. NULL: an exception is set. Threads: Python's lock is held.
static void *py_memo_type(void *given)
{
    static PyMethodDef methods[] = {
        {"find", (PyCFunction)(void *)py_memo_find, METH_FASTCALL, NULL},
        {"keep", (PyCFunction)(void *)py_memo_keep, METH_FASTCALL, NULL},
        {"clear", py_memo_clear, METH_NOARGS, NULL},
        {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_new, py_memo_new},
                                  {Py_tp_dealloc, py_memo_dealloc},
                                  {Py_tp_methods, methods},
                                  {0, NULL}};
    static PyType_Spec spec = {"partita.nn.Memo", sizeof(struct py_memo), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    PyObject *capsule;
    if (!PyArg_ParseTuple((PyObject *)given, "OOOOO", &capsule, &py_torch.tensor,
                          &py_torch.parameter, &py_torch.modes, &py_torch.variables))
        return NULL;
    Py_INCREF((PyObject *)given); // and what it holds
    // An older PyTorch has none, nor has the stand-in for PyTorch with which the web site is made.
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
        py_torch.exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        if (py_torch.exchange->major != 1 || !py_torch.exchange->read) py_torch.exchange = NULL;
    }
    py_torch.requires_grad = PyUnicode_FromString("requires_grad");
    py_torch.is_neg = PyUnicode_FromString("is_neg");
    return PyType_FromSpec(&spec);
}
