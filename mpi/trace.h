/* KASURI_MPI_TRACE=FILE: what the program sends, to whom and in which order, as a GOAL program. */
#ifndef KASURI_TRACE_H
#define KASURI_TRACE_H

#include <mpi.h>

/* The tag of messages of collective calls; those of the program's own have its tags and 1. */
enum { KASURI_COLLECTIVE = 0 };

/* A call begins. 0 if it is not recorded: no trace is asked for, or the communicator joins two groups. */
int kasuri_trace_enter(MPI_Comm comm);

/* Messages of the call, to and from ranks of its communicator. None is written for 0 bytes of a collective call. */
void kasuri_trace_send(int to, MPI_Count bytes);
void kasuri_trace_receive(int from, MPI_Count bytes);

/* What follows begins when all before has ended. */
void kasuri_trace_stage(void);

/* The call ends. */
void kasuri_trace_leave(void);

/* The program's own messages. `to` and `from` are ranks of the communicator for which `enter` was called. */
void kasuri_trace_own_send(int to, MPI_Count bytes, int tag);
void kasuri_trace_own_receive(const MPI_Status *status);

/* A send or receive that does not wait: it is kept under its request. */
void kasuri_trace_start_send(int to, MPI_Count bytes, int tag, MPI_Request request);
void kasuri_trace_start_receive(MPI_Comm comm, MPI_Request request);

/* Some of these requests, as they were before, may have ended: those with `ended`, or all if it is NULL. `begin` is the time at which the
 * wait for them began. */
void kasuri_trace_end(const MPI_Request *requests, const MPI_Status *statuses, const int *ended, int count, double begin);

/* A request of which the program will not hear again. */
void kasuri_trace_forget(MPI_Request request);

int kasuri_trace_is_on(void);

/* Gathers the program of all ranks and writes it. Collective, before MPI ends. */
void kasuri_trace_write(void);

#endif
