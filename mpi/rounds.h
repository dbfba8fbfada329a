/* A collective other than the all-to-all, by the phases of its plan. */
#ifndef KASURI_ROUNDS_H
#define KASURI_ROUNDS_H

#include <mpi.h>
#include <stddef.h>

#include "plan.h"

/* Elements of a type, cut into the parts of the schedule. */
struct kasuri_vector {
    char *buffer;
    MPI_Datatype type;
    /* Bytes between elements; and where the bytes of an element begin, and how many it spans. */
    MPI_Aint extent, low, span;
    /* Do its bytes lie in memory as they are sent? */
    int is_plain;
    /* Where blocks are added. */
    MPI_Op op;
    /* By part: its first element, and how many it has. */
    const MPI_Count *first, *count;
    /* Do parts that follow each other in the schedule and in memory travel as one message? Not where ranks lay them out as they like. */
    int is_common;
};

/* What a call needs: messages at a time, and elements that arrive to be added. */
struct kasuri_need {
    size_t messages;
    MPI_Count added;
};

struct kasuri_need kasuri_needs(const struct kasuri_plan *plan, const struct kasuri_vector *vector);

/* Bytes of so many elements, at whatever distance they lie. */
size_t kasuri_bytes_of(const struct kasuri_vector *vector, MPI_Count elements);

/* Runs all phases. `room` has kasuri_bytes_of(vector, added) bytes. Returns MPI's error. */
int kasuri_run_rounds(const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room);

#endif
