/* KASURI_MPI_TRACE=FILE: what the program's collective calls send, to whom and in which order, as a GOAL program. */
#ifndef KASURI_TRACE_H
#define KASURI_TRACE_H

#include <mpi.h>

/* A call begins. 0 if it is not recorded: no trace is asked for, or the communicator joins two groups. */
int kasuri_trace_enter(MPI_Comm comm);

/* Messages of the call, to and from ranks of its communicator. None is written for 0 bytes. */
void kasuri_trace_send(int to, MPI_Count bytes);
void kasuri_trace_receive(int from, MPI_Count bytes);

/* What follows begins when all before has ended. */
void kasuri_trace_stage(void);

/* The call ends. */
void kasuri_trace_leave(void);

/* Gathers the program of all ranks and writes it. Collective, before MPI ends. */
void kasuri_trace_write(void);

#endif
