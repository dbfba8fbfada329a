/* The messages of an all-to-all that a rank sends or receives, and the phases by which they go. */
#ifndef KASURI_BLOCKS_H
#define KASURI_BLOCKS_H

#include <mpi.h>

#include "plan.h"
#include "window.h"

/* One message for each rank of the communicator. */
struct kasuri_blocks {
    char *buffer;
    MPI_Datatype type;
    /* Extent of an element and its size, in bytes. */
    MPI_Aint extent;
    MPI_Count size;
    /* Do its bytes lie in memory as they are sent? */
    int is_plain;
    /* Elements for each rank: `count`, or as many as stand in one of the lists, of either width. */
    MPI_Count count;
    const int *counts;
    const MPI_Count *long_counts;
    /* With a list: where they lie, in elements; or in bytes. */
    const int *displacements;
    const MPI_Aint *long_displacements;
    const MPI_Aint *offsets;
    /* Where the elements of each rank have a type of their own: these types, and their sizes. */
    const MPI_Datatype *types;
    const MPI_Count *sizes;
};

/* Has each rank a count of its own? */
static inline int kasuri_is_list(const struct kasuri_blocks *blocks)
{
    return blocks->counts || blocks->long_counts;
}

static inline MPI_Count kasuri_count(const struct kasuri_blocks *blocks, int rank)
{
    if (blocks->long_counts)
        return blocks->long_counts[rank];
    return blocks->counts ? blocks->counts[rank] : blocks->count;
}

static inline MPI_Count kasuri_bytes(const struct kasuri_blocks *blocks, int rank)
{
    return kasuri_count(blocks, rank) * (blocks->sizes ? blocks->sizes[rank] : blocks->size);
}

static inline MPI_Datatype kasuri_type(const struct kasuri_blocks *blocks, int rank)
{
    return blocks->types ? blocks->types[rank] : blocks->type;
}

/* Does a rank wait for its messages of a step before it goes on? For short ones, time is lost that no contention costs. */
int kasuri_waits(const struct kasuri_plan *plan, struct kasuri_step step, const struct kasuri_blocks *out, const struct kasuri_blocks *in);

/* Where the block of a rank lies. */
char *kasuri_address(const struct kasuri_blocks *blocks, int rank);

/* Messages under way at most, of an all-to-all. */
enum { KASURI_WINDOW = 64 };

/* An all-to-all that is under way: its messages, and how far it has come. */
struct kasuri_exchange {
    const struct kasuri_plan *plan;
    struct kasuri_blocks out, in;
    int tag;
    /* The next step; -1 is the message to oneself. */
    int step;
    /* Must what is under way end first? */
    int is_full;
    int error;
    struct kasuri_window open;
    MPI_Request requests[KASURI_WINDOW];
    MPI_Status statuses[KASURI_WINDOW];
    int is_receive[KASURI_WINDOW];
};

/* Prepares one, with the message to oneself or without it; nothing is sent yet. */
void kasuri_prepare_exchange(struct kasuri_exchange *exchange, const struct kasuri_plan *plan, const struct kasuri_blocks *out,
                             const struct kasuri_blocks *in, int tag, int has_own);

/* Goes on by the phases of the plan: to the end, or, if it must not wait, as far as messages have arrived. Is it at its end? */
int kasuri_go_on(struct kasuri_exchange *exchange, int waits);

/* A way to exchange all blocks. Returns MPI's error. */
typedef int kasuri_way(const struct kasuri_plan *plan, const struct kasuri_blocks *out, const struct kasuri_blocks *in);

/* Sends and receives all by the phases of the plan. */
kasuri_way kasuri_run;

/* The same but for the message to oneself. */
kasuri_way kasuri_run_steps;

/* The same for equal blocks: the ranks of a place share its messages. */
kasuri_way kasuri_run_gathered;

/* What is sent where what arrives takes its place: a packed copy, whose memory kasuri_free_packed frees, after an error, too. */
struct kasuri_packed {
    struct kasuri_blocks blocks;
    int *counts;
    MPI_Aint *offsets;
};

int kasuri_pack(const struct kasuri_plan *plan, const struct kasuri_blocks *in, struct kasuri_packed *packed);
void kasuri_free_packed(struct kasuri_packed *packed);

/* The same by some way, which need not look after the message to oneself, in place. */
int kasuri_run_in_place(const struct kasuri_plan *plan, const struct kasuri_blocks *in, kasuri_way *run);

#endif
