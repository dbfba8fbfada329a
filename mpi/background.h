/* Collective calls that go on while the program does other things.
 *
 * MPI lets a program that waits for one thing forget all others: rank A may stay in MPI_Recv until rank B, which waits for the end of an
 * MPI_Ialltoall, sends. So the phases of A must go on whatever A's program calls, and no call of MPI does that for a library on top of it:
 * a thread has to, which needs MPI_THREAD_MULTIPLE. One thread goes round all operations of the process, so none waits for another:
 * programs may begin operations of two communicators, and start persistent ones, in another order on each rank.
 *
 * The request that the program gets is the MPI library's own, of a receive from this rank itself. The thread sends the message when the
 * operation has ended. So every call that takes requests takes these. A thread that waits for requests meanwhile helps the operations on.
 */
#ifndef KASURI_BACKGROUND_H
#define KASURI_BACKGROUND_H

#include <mpi.h>

#include "plan.h"

struct kasuri_operation {
    struct kasuri_plan *plan;
    /* Of its messages. Those of one plan that have the same begin one after the other. */
    int tag;
    /* Begins if `has_begun` is 0, and goes on as far as it can without waiting. Has it ended? `*has_moved` becomes 1 if it has gone on. */
    int (*go_on)(struct kasuri_operation *operation, int *has_moved);
    /* Frees it and all that it has. */
    void (*free)(struct kasuri_operation *operation);
    int has_begun;
    int error;
    /* Is it begun again and again, by MPI_Start? Then it has a request for all its life, of which the program may rid itself. */
    int is_persistent, is_active, is_freed;
    MPI_Request request;
    /* The tag of the message of which the request is. */
    int number;
    struct kasuri_operation *next, *next_kept;
};

/* Has the user asked for it: KASURI_MPI_NONBLOCKING? */
int kasuri_wants_background(void);

/* Is there the thread? */
int kasuri_has_background(void);

/* Starts the thread; MPI must have MPI_THREAD_MULTIPLE. */
void kasuri_start_background(void);

/* Is any operation under way? */
int kasuri_is_busy(void);

/* Lets the operations go on from a thread of the program, which has nothing better to do. */
void kasuri_help(void);

/* Ends the thread, after all operations. */
void kasuri_end_background(void);

/* The program may free a type before the call has ended: puts a duplicate of one that is not MPI's own in its place and into `held`, which the
 * caller frees. Returns MPI's error. */
int kasuri_hold_type(MPI_Datatype *type, MPI_Datatype *held);

/* Gives an operation a request of its own, which MPI_Start begins. The operation is the background's from now on. Returns MPI's error. */
int kasuri_keep_operation(struct kasuri_operation *operation, MPI_Request *request);

/* Begins the operation, which is the thread's from now on, with its plan. Returns MPI's error. */
int kasuri_begin_operation(struct kasuri_operation *operation, MPI_Request *request);

#endif
