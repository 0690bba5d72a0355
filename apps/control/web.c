// SPDX-License-Identifier: MIT
// See remote.h. libmicrohttpd parses HTTP; it has no thread here, so that lines are executed
// between other work of the thread that serves the control socket too. The page asks for the status
// several times a second: Debian's library has no WebSockets, and a connection that is always open
// would have to be watched and limited.
//
// A page of another site may send requests too. Its browser names that site in Origin, which must
// be the Host; and a name whose address became this machine's (DNS rebinding) is no Host of it.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "remote.h"

enum {
    MAX_CONNECTIONS = 32,
    IDLE_SECONDS = 30,
    MAX_UPLOAD = 256 << 20,
    MAX_PARTS = 64, // between two looks at the audio device
    NAME_BYTES = 128,
    HOST_BYTES = 128,
    TOKEN_BYTES = 16,
    PATH_BYTES = 512,
};

// The library is loaded by web_open: GnuTLS, on which it depends, would delay every start of the
// program. All libraries of this name have the functions that are called here.
static const char LIBRARY[] = "libmicrohttpd.so.12";
static void *library;
#define mhd(name) ((__typeof__(&MHD_##name))dlsym(library, "MHD_" #name))

static const unsigned char page[] = {
#include "page.inc"
    0};

struct request {
    struct request *next; // of those that wait
    struct MHD_Connection *connection;
    unsigned status; // of HTTP, if it is refused; 0: it is not
    char line[CONTROL_LINE_BYTES];
    size_t n;              // bytes of the line or of the upload
    int fd;                // of the upload; -1: none
    char path[PATH_BYTES]; // of the upload; empty: nothing is to be removed
    uint64_t ticket;
    char *answer;
};

struct web {
    struct remote remote;
    struct MHD_Daemon *daemon;
    struct request *waiting; // for their ticket
    control_line_fn *run;
    void *user;
    char kept[PATH_BYTES]; // of the upload that was loaded last, for `reload`; empty: none
    char host[HOST_BYTES]; // as in an address of HTTP, with the port
    char token[2 * TOKEN_BYTES + 1]; // empty: none is needed
};

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *type,
                                 const char *text)
{
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"Referrer-Policy", "no-referrer"},
        {"X-Content-Type-Options", "nosniff"},
        {"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src "
                                    "'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"}};
    struct MHD_Response *r =
        mhd(create_response_from_buffer)(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    if (!r) return MHD_NO;
    mhd(add_response_header)(r, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        mhd(add_response_header)(r, headers[i][0], headers[i][1]);
    const enum MHD_Result result = mhd(queue_response)(c, status, r);
    mhd(destroy_response)(r);
    return result;
}

static enum MHD_Result send_refusal(struct MHD_Connection *c, unsigned status)
{
    char text[128];
    snprintf(text, sizeof text, "{\"ok\":false,\"error\":\"%s\"}\n",
             mhd(get_reason_phrase_for)(status));
    return send_text(c, status, "application/json", text);
}

// The address as it was given, and the names of this machine; browsers leave out the port 80.
static bool is_own_host(const struct web *w, const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    const char *port = strrchr(w->host, ':');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (!strncasecmp(host, names[i], n) && !strcmp(host[n] ? host + n : ":80", port))
            return true;
    }
    return strcmp(host, w->host) == 0;
}

// Takes the same time for every wrong token of the right length.
static bool is_token(const struct web *w, const char *given)
{
    bool equal = strlen(given) == strlen(w->token);
    for (size_t i = 0; given[i] && w->token[i]; i++) equal &= given[i] == w->token[i];
    return equal;
}

// The status with which a request is refused; 0: it is not.
static unsigned check_request(const struct web *w, struct MHD_Connection *c, const char *url,
                              const char *method)
{
    const char *host = mhd(lookup_connection_value)(c, MHD_HEADER_KIND, "Host"),
               *origin = mhd(lookup_connection_value)(c, MHD_HEADER_KIND, "Origin"),
               *token = mhd(lookup_connection_value)(c, MHD_GET_ARGUMENT_KIND, "token"),
               *length = mhd(lookup_connection_value)(c, MHD_HEADER_KIND, "Content-Length");
    const bool is_page = strcmp(url, "/") == 0;
    if (!host) return MHD_HTTP_BAD_REQUEST;
    if (!*w->token && !is_own_host(w, host)) return MHD_HTTP_FORBIDDEN;
    if (origin && (strncmp(origin, "http://", 7) != 0 || strcmp(origin + 7, host) != 0))
        return MHD_HTTP_FORBIDDEN;
    if (*w->token && !token) return MHD_HTTP_UNAUTHORIZED;
    if (*w->token && !is_token(w, token)) return MHD_HTTP_FORBIDDEN;
    if (!is_page && strcmp(url, "/command") != 0 && strcmp(url, "/load") != 0)
        return MHD_HTTP_NOT_FOUND;
    if (length && strtoull(length, NULL, 10) > MAX_UPLOAD) return MHD_HTTP_CONTENT_TOO_LARGE;
    return strcmp(method, is_page ? "GET" : "POST") == 0 ? 0 : MHD_HTTP_METHOD_NOT_ALLOWED;
}

// In a folder of its own, so that the filter has the name that the user knows.
static unsigned open_upload(struct request *r, const char *name)
{
    const size_t n = name ? strnlen(name, NAME_BYTES) : 0;
    const char *folder = getenv("TMPDIR");
    if (n < 5 || n == NAME_BYTES || strcasecmp(name + n - 4, ".wav") != 0 || *name == '.' ||
        strpbrk(name, "/\n\r"))
        return MHD_HTTP_BAD_REQUEST;
    snprintf(r->path, sizeof r->path, "%.200s/partita-XXXXXX", folder ? folder : "/tmp");
    if (mkdtemp(r->path)) strcat(strcat(r->path, "/"), name);
    else *r->path = 0;
    if (*r->path) r->fd = open(r->path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return r->fd < 0 ? MHD_HTTP_INSUFFICIENT_STORAGE : 0;
}

static void add_bytes(struct request *r, const char *bytes, size_t n)
{
    const size_t limit = r->fd < 0 ? sizeof r->line - 1 : MAX_UPLOAD;
    if (r->status || !n) return; // at the end of a request there are no bytes
    if (n > limit - r->n) r->status = MHD_HTTP_CONTENT_TOO_LARGE;
    else if (r->fd < 0) memcpy(r->line + r->n, bytes, n);
    else if (write(r->fd, bytes, n) != (ssize_t)n) r->status = MHD_HTTP_INSUFFICIENT_STORAGE;
    r->n += r->status ? 0 : n;
}

static void remove_upload(char path[PATH_BYTES])
{
    char *name = strrchr(path, '/');
    if (!name) return;
    unlink(path);
    *name = 0;
    rmdir(path);
    *path = 0;
}

// The file of an upload that is played stays until the next one is, since it may be read again.
static void take_answer(struct web *w, struct request *r, char *answer)
{
    json_t *j = answer && *r->path ? json_loads(answer, 0, NULL) : NULL;
    if (json_is_true(json_object_get(j, "ok"))) {
        remove_upload(w->kept);
        strcpy(w->kept, r->path);
        *r->path = 0;
    }
    json_decref(j);
    r->answer = answer;
    if (!answer) r->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
}

static void run_line(struct web *w, struct request *r)
{
    struct control_reply reply = {.period = -1};
    if (r->fd >= 0) snprintf(r->line, sizeof r->line, "load %s", r->path);
    else if (strlen(r->line) != r->n) r->status = MHD_HTTP_BAD_REQUEST; // it has a zero byte
    if (r->status) return;
    w->run(w->user, r->line, &reply);
    r->ticket = reply.ticket;
    if (!r->ticket) take_answer(w, r, reply.line);
}

// Of libmicrohttpd: called when the headers of a request have arrived, with each part of its body,
// and at its end, which is also after MHD_resume_connection.
static enum MHD_Result take_request(void *user, struct MHD_Connection *c, const char *url,
                                    const char *method, const char *version, const char *bytes,
                                    size_t *n, void **state)
{
    struct web *w = user;
    struct request *r = *state;
    (void)version;
    if (!r) {
        *state = r = calloc(1, sizeof *r);
        if (!r) return MHD_NO;
        r->connection = c;
        r->fd = -1;
        r->status = check_request(w, c, url, method);
        if (!r->status && strcmp(url, "/load") == 0)
            r->status =
                open_upload(r, mhd(lookup_connection_value)(c, MHD_GET_ARGUMENT_KIND, "name"));
        return r->status ? send_refusal(c, r->status) : MHD_YES;
    }
    add_bytes(r, bytes, *n);
    if (*n) {
        *n = 0;
        return MHD_YES;
    }
    if (!r->status && strcmp(url, "/") == 0)
        return send_text(c, MHD_HTTP_OK, "text/html; charset=utf-8", (const char *)page);
    if (!r->status && !r->answer) run_line(w, r);
    if (r->status) return send_refusal(c, r->status);
    if (r->answer) return send_text(c, MHD_HTTP_OK, "application/json", r->answer);
    r->next = w->waiting;
    w->waiting = r;
    mhd(suspend_connection)(c);
    return MHD_YES;
}

static void end_request(void *user, struct MHD_Connection *c, void **state,
                        enum MHD_RequestTerminationCode how)
{
    struct request *r = *state;
    (void)user, (void)c, (void)how;
    if (!r) return;
    if (r->fd >= 0) close(r->fd);
    remove_upload(r->path);
    free(r->answer);
    free(r);
}

// A token, unless only programs of this machine can connect.
static bool make_token(struct web *w, const struct sockaddr *address)
{
    unsigned char random[TOKEN_BYTES];
    const bool is_own =
        address->sa_family == AF_INET6
            ? IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr)
            : ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    if (is_own) return true;
    if (getrandom(random, sizeof random, 0) != sizeof random) return false;
    for (int i = 0; i < TOKEN_BYTES; i++) snprintf(w->token + 2 * i, 3, "%02x", random[i]);
    return true;
}

static void web_answer(struct remote *remote, uint64_t ticket, const char *line)
{
    struct web *web = (struct web *)remote;
    for (struct request **at = &web->waiting; *at;) {
        struct request *r = *at;
        if (r->ticket > ticket) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        take_answer(web, r, strdup(line));
        mhd(resume_connection)(r->connection);
    }
}

static void web_serve(struct remote *remote, control_line_fn *run, void *user)
{
    struct web *web = (struct web *)remote;
    MHD_UNSIGNED_LONG_LONG wait = 0;
    web->run = run;
    web->user = user;
    // Each run takes one part of what has arrived, and the descriptor does not tell of the rest.
    for (int i = 0; i < MAX_PARTS && wait == 0; i++)
        if (!mhd(run)(web->daemon) || !mhd(get_timeout)(web->daemon, &wait)) return;
}

static void web_close(struct remote *remote)
{
    struct web *web = (struct web *)remote;
    web_answer(remote, UINT64_MAX, "{\"ok\":false,\"error\":\"the program ends\"}\n");
    mhd(run)(web->daemon);
    mhd(stop_daemon)(web->daemon);
    remove_upload(web->kept);
    free(web);
}

bool web_open(struct remote **ret, const char *address, struct fault *fault)
{
    struct web *w = calloc(1, sizeof *w);
    if (!w) return fault_set(fault, "out of memory");
    struct addrinfo *found = address_find("--web", address, SOCK_STREAM, fault);
    if (found && !library) library = dlopen(LIBRARY, RTLD_NOW);
    if (found && !library)
        fault_set(fault, "--web needs %s, which cannot be loaded: %s", LIBRARY, dlerror());
    else if (found) {
        const char *colon = strrchr(address, ':');
        const unsigned flags = found->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0;
        const bool bare = flags && *address != '['; // HTTP has colons in brackets only
        snprintf(w->host, sizeof w->host, "%s%.*s%s:%s", bare ? "[" : "",
                 colon ? (int)(colon - address) : NAME_BYTES, colon ? address : "127.0.0.1",
                 bare ? "]" : "", colon ? colon + 1 : address);
        if (make_token(w, found->ai_addr))
            w->daemon = mhd(start_daemon)(
                flags | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, take_request, w,
                MHD_OPTION_SOCK_ADDR, found->ai_addr, MHD_OPTION_NOTIFY_COMPLETED, end_request,
                NULL, MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
        if (!w->daemon) fault_set(fault, "--web %s: cannot receive: %s", address, strerror(errno));
    }
    if (found) freeaddrinfo(found);
    if (!w->daemon) {
        free(w);
        return false;
    }
    fprintf(stderr, "partita live: http://%s/%s%s\n", w->host, *w->token ? "?token=" : "",
            w->token);
    w->remote = (struct remote){mhd(get_daemon_info)(w->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
                                web_close, web_serve, web_answer};
    *ret = &w->remote;
    return true;
}
