/* A collective other than the all-to-all, by the phases of its plan. */
#ifndef KASURI_ROUNDS_H
#define KASURI_ROUNDS_H

#include <mpi.h>
#include <stddef.h>

#include "plan.h"
#include "window.h"

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

/* A collective that is under way. */
struct kasuri_rounds {
    const struct kasuri_plan *plan;
    const struct kasuri_vector *vector;
    int tag;
    struct kasuri_window window;
    /* What arrives to be added. It begins where an element would, so its bytes may begin later. */
    char *room;
    /* The round that is next, or whose messages are under way. */
    int round, is_open;
    /* Has a message not begun? */
    int is_lost;
    /* The first error of all, and that of the round. */
    int error, round_error;
};

/* Prepares one; nothing is sent yet. `room` has kasuri_bytes_of(vector, added) bytes. */
void kasuri_prepare_rounds(struct kasuri_rounds *rounds, const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room,
                           int tag);

/* Goes on: to the end, or, if it must not wait, as far as messages have arrived. Is it at its end? */
int kasuri_go_on_rounds(struct kasuri_rounds *rounds, int waits);

/* Frees its memory. */
void kasuri_free_rounds(struct kasuri_rounds *rounds);

/* Runs all phases. `room` is as above. Returns MPI's error. */
int kasuri_run_rounds(const struct kasuri_plan *plan, const struct kasuri_vector *vector, char *room);

#endif
