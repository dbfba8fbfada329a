#include "background.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "own.h"
#include "trace.h"

/* After so many turns in which nothing has moved the thread sleeps between them, for so many nanoseconds: the program needs the core. */
enum { TURNS = 64, NAP = 20000 };

/* Operations that no turn has seen yet, those that are under way, and how many both are. Whoever goes round holds `turning`. */
static struct kasuri_operation *incoming, *active;
static atomic_int busy;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, turning = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_come = PTHREAD_COND_INITIALIZER;
static int has_thread, is_ending;
static pthread_t thread;

/* Persistent operations, and how many they are. */
static struct kasuri_operation *kept;
static atomic_int kept_count;

/* Numbers of requests that are in use no more. */
static int *numbers, free_numbers, fresh_number;

int kasuri_wants_background(void)
{
    return getenv("KASURI_MPI_NONBLOCKING") != NULL;
}

int kasuri_has_background(void)
{
    return has_thread;
}

/* A number that no operation has. -1 if there is no memory to give it back later. */
static int take_number(void)
{
    int number = -1;
    pthread_mutex_lock(&lock);
    if (free_numbers > 0) {
        number = numbers[--free_numbers];
    } else {
        int *more = realloc(numbers, ((size_t)fresh_number + 1) * sizeof *more);
        if (more) {
            numbers = more;
            number = fresh_number++;
        }
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void give_number_back(int number)
{
    pthread_mutex_lock(&lock);
    numbers[free_numbers++] = number;
    pthread_mutex_unlock(&lock);
}

/* Puts a list behind another. */
static void append(struct kasuri_operation **list, struct kasuri_operation *others)
{
    while (*list)
        list = &(*list)->next;
    *list = others;
}

static void free_operation(struct kasuri_operation *operation)
{
    kasuri_release(operation->plan);
    operation->free(operation);
}

/* An operation has ended. The message is last: then the program may do with the request what it likes. */
static void end(struct kasuri_operation *operation)
{
    static const char nothing;
    const int number = operation->number, is_wrong = operation->error != MPI_SUCCESS;
    if (is_wrong)
        kasuri_call_error_handler(operation->plan, operation->error);
    operation->has_begun = 0;
    operation->error = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    operation->is_active = 0;
    const int is_over = !operation->is_persistent || operation->is_freed;
    pthread_mutex_unlock(&lock);
    if (is_over)
        free_operation(operation);
    /* It is for nothing: a message that is longer is an error of the request. */
    PMPI_Send(&nothing, is_wrong, MPI_BYTE, 0, number, kasuri_alone());
    if (is_over)
        give_number_back(number);
    atomic_fetch_sub(&busy, 1);
}

/* Would a message of the operation be taken for one of another that began before it? */
static int is_held_up(const struct kasuri_operation *operation)
{
    for (const struct kasuri_operation *before = active; before != operation; before = before->next)
        if (before->plan == operation->plan && before->tag == operation->tag)
            return 1;
    return 0;
}

/* Lets each operation go on once. Has anything moved? */
static int turn(void)
{
    int has_moved = 0;
    pthread_mutex_lock(&lock);
    append(&active, incoming);
    incoming = NULL;
    pthread_mutex_unlock(&lock);
    for (struct kasuri_operation **at = &active; *at;) {
        struct kasuri_operation *operation = *at;
        const int waits = !operation->has_begun && is_held_up(operation);
        if (waits || !operation->go_on(operation, &has_moved)) {
            at = &operation->next;
            continue;
        }
        *at = operation->next;
        end(operation);
        has_moved = 1;
    }
    return has_moved;
}

int kasuri_is_busy(void)
{
    return atomic_load(&busy) > 0;
}

void kasuri_help(void)
{
    int has_moved = 0;
    if (kasuri_is_busy() && pthread_mutex_trylock(&turning) == 0) {
        has_moved = turn();
        pthread_mutex_unlock(&turning);
    }
    if (!has_moved)
        sched_yield();
}

static void rest(unsigned idle)
{
    const struct timespec nap = {0, NAP};
    if (idle < TURNS)
        sched_yield();
    else
        nanosleep(&nap, NULL);
}

static void *work(void *unused)
{
    unsigned idle = 0;
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!kasuri_is_busy() && !is_ending)
            pthread_cond_wait(&has_come, &lock);
        const int is_over = !kasuri_is_busy();
        pthread_mutex_unlock(&lock);
        if (is_over)
            return unused;
        idle++;
        if (pthread_mutex_trylock(&turning) == 0) {
            idle = turn() ? 0 : idle;
            pthread_mutex_unlock(&turning);
        }
        rest(idle);
    }
}

void kasuri_start_background(void)
{
    sigset_t all, before;
    /* Signals are for the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread = pthread_create(&thread, NULL, work, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void kasuri_end_background(void)
{
    if (!has_thread)
        return;
    pthread_mutex_lock(&lock);
    is_ending = 1;
    pthread_cond_signal(&has_come);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    has_thread = 0;
}

/* Hands an operation over to whoever goes round next. */
static void hand_over(struct kasuri_operation *operation)
{
    operation->next = NULL;
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&busy, 1);
    operation->is_active = 1;
    append(&incoming, operation);
    pthread_cond_signal(&has_come);
    pthread_mutex_unlock(&lock);
}

/* Gives an operation a number, and a request that a message of this number ends: `receive` makes it. The operation holds its plan then. */
static int give_request(struct kasuri_operation *operation, __typeof__(PMPI_Irecv) *receive, MPI_Request *request)
{
    operation->number = take_number();
    if (operation->number < 0)
        return MPI_ERR_NO_MEM;
    const int error = receive(NULL, 0, MPI_BYTE, 0, operation->number, kasuri_alone(), request);
    if (error == MPI_SUCCESS)
        kasuri_hold(operation->plan);
    else
        give_number_back(operation->number);
    return error;
}

int kasuri_begin_operation(struct kasuri_operation *operation, MPI_Request *request)
{
    const int error = give_request(operation, PMPI_Irecv, request);
    if (error == MPI_SUCCESS)
        hand_over(operation);
    return error;
}

int kasuri_keep_operation(struct kasuri_operation *operation, MPI_Request *request)
{
    const int error = give_request(operation, PMPI_Recv_init, request);
    if (error != MPI_SUCCESS)
        return error;
    operation->is_persistent = 1;
    operation->request = *request;
    pthread_mutex_lock(&lock);
    operation->next_kept = kept;
    kept = operation;
    kept_count++;
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

/* The persistent operation of a request, if there is one. */
static struct kasuri_operation *find(MPI_Request request)
{
    if (kept_count == 0 || request == MPI_REQUEST_NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    struct kasuri_operation *operation = kept;
    while (operation && operation->request != request)
        operation = operation->next_kept;
    pthread_mutex_unlock(&lock);
    return operation;
}

/* The program frees a persistent operation's request. One that is under way goes on to its end. */
static void let_go(struct kasuri_operation *operation)
{
    pthread_mutex_lock(&lock);
    struct kasuri_operation **at = &kept;
    while (*at != operation)
        at = &(*at)->next_kept;
    *at = operation->next_kept;
    kept_count--;
    operation->is_freed = 1;
    const int is_active = operation->is_active;
    pthread_mutex_unlock(&lock);
    if (is_active)
        return;
    give_number_back(operation->number);
    free_operation(operation);
}

int kasuri_hold_type(MPI_Datatype *type, MPI_Datatype *held)
{
    int integers, addresses, types, combiner, error = PMPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (error != MPI_SUCCESS || combiner == MPI_COMBINER_NAMED)
        return error;
    error = PMPI_Type_dup(*type, held);
    if (error == MPI_SUCCESS)
        *type = *held;
    return error;
}

int MPI_Start(MPI_Request *request)
{
    struct kasuri_operation *operation = find(*request);
    const int error = PMPI_Start(request);
    if (operation && error == MPI_SUCCESS)
        hand_over(operation);
    return error;
}

int MPI_Startall(int count, MPI_Request requests[])
{
    const int error = PMPI_Startall(count, requests);
    for (int i = 0; i < count && error == MPI_SUCCESS; i++) {
        struct kasuri_operation *operation = find(requests[i]);
        if (operation)
            hand_over(operation);
    }
    return error;
}

int MPI_Request_free(MPI_Request *request)
{
    struct kasuri_operation *operation = find(*request);
    kasuri_trace_forget(*request);
    if (operation)
        let_go(operation);
    return PMPI_Request_free(request);
}

KASURI_TAKES(Start);
KASURI_TAKES(Startall);
KASURI_TAKES(Request_free);
