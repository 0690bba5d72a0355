// SPDX-License-Identifier: MIT
// The commands that steer `partita live`: their parser, and the socket with clients that send too
// much, do not read, or go away.

#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/socket.h"
#include "control/table.h"

static bool parse(struct control_command *ret, const char *line, struct fault *fault)
{
    char copy[256];
    snprintf(copy, sizeof copy, "%s", line);
    bool good = control_parse(ret, copy, fault);
    if (good && ret->text) ret->text = line + (ret->text - copy);
    return good;
}

static void commands_are_understood(void **state)
{
    static const struct {
        const char *line;
        enum control_id id;
        enum control_verb verb;
        double number;
    } rows[] = {
        {"gain -6", CONTROL_GAIN, CONTROL_SET, -6},
        {"  gain \t +2.5  \r", CONTROL_GAIN, CONTROL_SET, 2.5},
        {"gain up 1", CONTROL_GAIN, CONTROL_UP, 1},
        {"gain -3dB", CONTROL_GAIN, CONTROL_SET, -3},
        {"fade 0.25s", CONTROL_FADE, CONTROL_SET, 250},
        {"azimuth down 5", CONTROL_AZIMUTH, CONTROL_DOWN, 5},
        {"mute 0", CONTROL_MUTE, CONTROL_OFF, 0},
        {"input-gain down 0.5", CONTROL_INPUT_GAIN, CONTROL_DOWN, 0.5},
        {"wet off", CONTROL_WET, CONTROL_OFF, 0},
        {"dry -1e1", CONTROL_DRY, CONTROL_SET, -10},
        {"mute on", CONTROL_MUTE, CONTROL_ON, 0},
        {"bypass toggle", CONTROL_BYPASS, CONTROL_TOGGLE, 0},
        {"filter 64", CONTROL_FILTER, CONTROL_SET, 64},
        {"next", CONTROL_NEXT, CONTROL_SET, 0},
        {"quit\r", CONTROL_QUIT, CONTROL_SET, 0},
        {"fade 0", CONTROL_FADE, CONTROL_SET, 0},
        {"subscribe 20", CONTROL_SUBSCRIBE, CONTROL_SET, 20},
        {"subscribe off", CONTROL_SUBSCRIBE, CONTROL_OFF, 0},
    };
    (void)state;
    struct fault fault;
    struct control_command c;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!parse(&c, rows[i].line, &fault)) fail_msg("%s: %s", rows[i].line, fault.text);
        assert_int_equal(c.id, rows[i].id);
        assert_int_equal(c.verb, rows[i].verb);
        assert_true(c.number == rows[i].number);
    }
    assert_true(parse(&c, "load a file.wav", &fault));
    assert_string_equal(c.text, "a file.wav");
    assert_true(parse(&c, "scene  late at night", &fault) && c.id == CONTROL_SCENE);
    assert_string_equal(c.text, "late at night");
}

// Every message names the word, the value and what is expected.
static void mistakes_are_explained(void **state)
{
    static const char *const rows[][2] = {
        {"", "the line is empty; `help` lists the commands"},
        {"gian 3", "gian: no such command (did you mean gain?); `help` lists the commands"},
        {"gain", "gain: needs DB|up DB|down DB"},
        {"gain much", "gain much: needs DB|up DB|down DB"},
        {"gain 900", "gain 900: is not between -300 and 300"},
        {"gain off", "gain off: needs DB|up DB|down DB"},
        {"gain up", "gain up: needs DB|up DB|down DB"},
        {"gain up -1", "gain -1: is not between 0 and 300"},
        {"gain down 1x", "gain 1x: needs DB|up DB|down DB"},
        {"gain nan", "gain nan: needs DB|up DB|down DB"},
        {"gain inf", "gain inf: needs DB|up DB|down DB"},
        {"gain up\xff", "gain up\xff: needs DB|up DB|down DB"},
        {"mute maybe", "mute maybe: needs on|off|toggle"},
        {"filter 0", "filter 0: is not between 1 and 64"},
        {"filter 1.5", "filter 1.5: is not a whole number"},
        {"next 2", "next 2: next takes no argument"},
        {"load", "load: needs IR"},
        {"subscribe 5", "subscribe 5: is not between 20 and 3.6e+06"},
        {"fade -1", "fade -1: is not between 0 and 60000"},
        {"gain\t\x01", "gain ?: needs DB|up DB|down DB"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fault fault;
        struct control_command c;
        assert_false(parse(&c, rows[i][0], &fault));
        assert_string_equal(fault.text, rows[i][1]);
    }
}

static void keys_are_commands(void **state)
{
    (void)state;
    for (int key = 0; key < 256; key++) {
        const char *line = control_key_line(key);
        struct control_command c;
        struct fault fault;
        if (line && !parse(&c, line, &fault)) fail_msg("key %c: %s", key, fault.text);
    }
    assert_string_equal(control_key_line('+'), "gain up 1");
    assert_string_equal(control_key_line('='), "gain up 1");
    assert_string_equal(control_key_line('7'), "filter 7");
    assert_null(control_key_line(0));
    assert_null(control_key_line('0'));
}

// A socket in a new folder. `status`, "a" and "b" are answered as `run` below says.
struct rig {
    char folder[64], path[96];
    struct control_socket *socket;
    double now;
};

static void rig_open(struct rig *rig)
{
    struct fault fault;
    *rig = (struct rig){.folder = "/tmp/partita-control-XXXXXX"};
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->path, sizeof rig->path, "%s/s", rig->folder);
    if (!control_socket_open(&rig->socket, rig->path, &fault)) fail_msg("%s", fault.text);
}

static void rig_close(struct rig *rig)
{
    control_socket_close(rig->socket);
    assert_int_equal(access(rig->path, F_OK), -1);
    assert_int_equal(rmdir(rig->folder), 0);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

// "load" is answered later, with ticket 1; "subscribe" every second.
static void run(void *user, char *line, struct control_reply *reply)
{
    int *n = user;
    ++*n;
    if (strcmp(line, "load") == 0) reply->ticket = 1;
    else reply->line = malloc(300);
    if (strcmp(line, "subscribe") == 0) reply->period = 1;
    if (reply->line) snprintf(reply->line, 300, "[%.280s]\n", line);
}

static int serve(struct rig *rig, int times)
{
    int n = 0;
    for (int i = 0; i < times; i++) control_socket_serve(rig->socket, rig->now, run, &n);
    return n;
}

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// What has arrived. Empty: nothing; "end": the connection is closed.
static const char *got(int fd)
{
    static char text[4096];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    if (n == 0 || (n < 0 && errno == ECONNRESET)) return "end";
    text[n < 0 ? 0 : n] = 0;
    return text;
}

static void several_clients_get_their_answers(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    struct stat st;
    assert_int_equal(stat(rig.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    int a = connect_to(rig.path), b = connect_to(rig.path);
    put(a, "one\ntw");
    put(b, "x\n\n");
    serve(&rig, 3);
    assert_string_equal(got(a), "[one]\n");
    assert_string_equal(got(b), "[x]\n[]\n");
    put(a, "o\r\nload\nlater");
    serve(&rig, 2);
    assert_string_equal(got(a), "[two\r]\n");
    assert_string_equal(got(a), ""); // waits for the file; `later` is not executed
    shutdown(a, SHUT_WR);
    serve(&rig, 2);
    control_socket_answer(rig.socket, 1, "{loaded}\n");
    serve(&rig, 2);
    assert_string_equal(got(a), "{loaded}\n[later]\n"); // the end of the input ends a line
    assert_string_equal(got(a), "end");
    close(a);
    close(b);
    serve(&rig, 2);
    rig_close(&rig);
}

static void status_is_sent_in_time(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int a = connect_to(rig.path);
    assert_true(isinf(control_socket_due(rig.socket)));
    put(a, "subscribe\n");
    serve(&rig, 2);
    assert_string_equal(got(a), "[subscribe]\n");
    assert_true(control_socket_due(rig.socket) == 1);
    control_socket_publish(rig.socket, 0.5, "early\n");
    control_socket_publish(rig.socket, 1.25, "first\n");
    assert_true(control_socket_due(rig.socket) == 2);
    control_socket_publish(rig.socket, 7, "late\n"); // no more than one, however late
    serve(&rig, 1);
    assert_string_equal(got(a), "first\nlate\n");
    assert_true(control_socket_due(rig.socket) == 7);
    close(a);
    rig_close(&rig);
}

static void lines_are_bounded(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int a = connect_to(rig.path), b = connect_to(rig.path), n = 0;
    char *text = malloc(CONTROL_LINE_BYTES + 1);
    memset(text, 'x', CONTROL_LINE_BYTES);
    text[CONTROL_LINE_BYTES] = 0;
    text[CONTROL_LINE_BYTES - 1] = '\n';
    put(a, text); // the longest line
    n = serve(&rig, 3);
    assert_int_equal(n, 1);
    assert_int_equal(strlen(got(a)), 283);
    text[CONTROL_LINE_BYTES - 1] = 'x';
    put(a, text);
    assert_int_equal(serve(&rig, 3), 0);
    assert_non_null(strstr(got(a), "the line is too long"));
    assert_string_equal(got(a), "end");
    assert_int_equal(send(b, "a\0b\nc\n", 6, 0), 6);
    assert_int_equal(serve(&rig, 2), 1);
    assert_non_null(strstr(got(b), "zero byte\"}\n[c]\n"));
    close(a);
    close(b);
    free(text);
    rig_close(&rig);
}

// Commands of a client that does not read its answers wait; one that does not read its status lines
// is closed. Others are served meanwhile.
static void clients_that_do_not_read_are_bounded(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int a = connect_to(rig.path), b = connect_to(rig.path);
    char text[301];
    memset(text, 'x', 299);
    text[299] = '\n', text[300] = 0;
    size_t sent = 0, run_lines = 0;
    for (int i = 0; i < 20000; i++) {
        if (send(a, text, 300, MSG_NOSIGNAL) == 300) sent++;
        run_lines += (size_t)serve(&rig, 1);
    }
    assert_true(run_lines < sent && sent < 20000); // the rest waits in the kernel, which is full
    put(b, "here\nsubscribe\n");
    serve(&rig, 1);
    assert_string_equal(got(b), "[here]\n[subscribe]\n");
    int closed = 0;
    for (int i = 0; i < 20000 && !closed; i++) {
        rig.now += 1;
        control_socket_publish(rig.socket, rig.now, text);
        serve(&rig, 1);
        closed = isinf(control_socket_due(rig.socket));
    }
    assert_true(closed);
    close(a);
    close(b);
    serve(&rig, 20);
    rig_close(&rig);
}

static void clients_are_counted(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    int fds[CONTROL_MAX_CLIENTS];
    for (int i = 0; i < CONTROL_MAX_CLIENTS; i++) {
        fds[i] = connect_to(rig.path);
        serve(&rig, 1);
    }
    int more = connect_to(rig.path);
    serve(&rig, 1);
    assert_non_null(strstr(got(more), "too many clients"));
    assert_string_equal(got(more), "end");
    close(more);
    struct pollfd files[CONTROL_MAX_FILES];
    assert_int_equal(control_socket_files(rig.socket, 0, files), CONTROL_MAX_FILES);
    close(fds[3]); // makes way for another
    serve(&rig, 1);
    fds[3] = connect_to(rig.path);
    put(fds[3], "hello\n");
    serve(&rig, 2);
    assert_string_equal(got(fds[3]), "[hello]\n");
    for (int i = 0; i < CONTROL_MAX_CLIENTS; i++) close(fds[i]);
    rig_close(&rig);
}

static void existing_paths_are_kept(void **state)
{
    (void)state;
    struct rig rig;
    struct control_socket *other = NULL;
    struct fault fault;
    char path[128];
    rig_open(&rig);
    assert_false(control_socket_open(&other, rig.path, &fault));
    assert_non_null(strstr(fault.text, "another program uses this socket"));
    snprintf(path, sizeof path, "%s/file", rig.folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_false(control_socket_open(&other, path, &fault));
    assert_non_null(strstr(fault.text, "exists and is not a socket"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_false(control_socket_open(&other, path, &fault));
    assert_int_equal(unlink(path), 0);
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    assert_false(control_socket_open(&other, path, &fault));
    assert_non_null(strstr(fault.text, "must have 1 to 107 characters"));
    assert_false(control_socket_open(&other, "/nowhere/at/all", &fault));
    assert_non_null(strstr(fault.text, "No such file"));

    // The socket of a program that was killed is replaced.
    int dead = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/dead", rig.folder);
    assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    if (!control_socket_open(&other, address.sun_path, &fault)) fail_msg("%s", fault.text);
    // If somebody else has taken the path, it stays.
    assert_int_equal(unlink(address.sun_path), 0);
    close(open(address.sun_path, O_CREAT | O_WRONLY, 0600));
    control_socket_close(other);
    assert_int_equal(unlink(address.sun_path), 0);
    rig_close(&rig);
}

// As in the next process after exec, here a child.
static void another_process_continues(void **state)
{
    (void)state;
    struct rig rig;
    struct control_kept kept;
    const struct control_kept none = {.fd = -1}, closed = {.fd = 99};
    int status;
    rig_open(&rig);
    int a = connect_to(rig.path), b = connect_to(rig.path), c = connect_to(rig.path);
    put(a, "subscribe\n");
    put(c, "half a li");
    serve(&rig, 4);
    assert_string_equal(got(a), "[subscribe]\n");
    control_socket_keep(rig.socket, &kept);
    put(b, "one\n"); // meanwhile
    const int later = connect_to(rig.path);
    put(later, "two\n");
    const pid_t child = fork();
    if (child == 0) {
        struct rig next = rig;
        struct control_socket *other = NULL;
        bool good = !control_socket_adopt(&other, "/another/path", &kept) &&
                    !control_socket_adopt(&other, rig.path, &none) &&
                    !control_socket_adopt(&other, rig.path, &closed) &&
                    control_socket_adopt(&next.socket, rig.path, &kept);
        good = good && serve(&next, 3) == 2 && control_socket_due(next.socket) <= 0;
        if (good) control_socket_publish(next.socket, 5, "status\n");
        good = good && serve(&next, 1) == 0 && control_socket_due(next.socket) == 5;
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(got(a), "status\n");
    assert_string_equal(got(b), "[one]\n");
    assert_string_equal(got(later), "[two]\n");
    assert_string_equal(got(c), ""); // whose line was not complete
    for (int i = 0; i < 4; i++) close((int[]){a, b, c, later}[i]);
    rig_close(&rig);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_process_continues),
        cmocka_unit_test(commands_are_understood),
        cmocka_unit_test(mistakes_are_explained),
        cmocka_unit_test(keys_are_commands),
        cmocka_unit_test(several_clients_get_their_answers),
        cmocka_unit_test(status_is_sent_in_time),
        cmocka_unit_test(lines_are_bounded),
        cmocka_unit_test(clients_that_do_not_read_are_bounded),
        cmocka_unit_test(clients_are_counted),
        cmocka_unit_test(existing_paths_are_kept),
    };
    return run_all(tests);
}
