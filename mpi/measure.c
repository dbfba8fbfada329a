#include "measure.h"

#include "own.h"

/* The longest message of a rank, in bytes; -1 if a count is wrong. */
static MPI_Count longest(const struct kasuri_blocks *blocks, int size)
{
    MPI_Count most = 0;
    for (int rank = 0; rank < (kasuri_is_list(blocks) ? size : 1); rank++) {
        if (kasuri_count(blocks, rank) < 0)
            return -1;
        if (kasuri_bytes(blocks, rank) > most)
            most = kasuri_bytes(blocks, rank);
    }
    return most;
}

/* What is known of a type of MPI's own, which never changes. Asking the library costs a message of a few bytes a tenth of its time. */
struct named {
    MPI_Datatype type;
    MPI_Aint extent;
    MPI_Count size;
    int is_known;
};

static KASURI_OWN_OF_THREAD struct named last_named;

MPI_Count kasuri_last_size(MPI_Datatype type)
{
    return last_named.is_known && type == last_named.type ? last_named.size : -1;
}

/* The sizes of the type, if the MPI library takes it. `*is_named`: it is no derived type. */
static int measure_type(struct kasuri_blocks *blocks, int *is_named)
{
    if (last_named.is_known && blocks->type == last_named.type) {
        blocks->extent = last_named.extent;
        blocks->size = last_named.size;
        blocks->is_plain = blocks->extent == blocks->size;
        *is_named = 1;
        return 1;
    }
    MPI_Aint low;
    int integers, addresses, types, combiner;
    if (!kasuri_is_valid(blocks->type) || PMPI_Type_get_extent(blocks->type, &low, &blocks->extent) != MPI_SUCCESS ||
        PMPI_Type_size_x(blocks->type, &blocks->size) != MPI_SUCCESS ||
        PMPI_Type_get_envelope(blocks->type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS)
        return 0;
    *is_named = combiner == MPI_COMBINER_NAMED;
    blocks->is_plain = *is_named && blocks->extent == blocks->size;
    if (*is_named)
        last_named = (struct named){blocks->type, blocks->extent, blocks->size, 1};
    return 1;
}

/* Is a type given where none is needed, as the MPI library asks for it? */
static int is_left_out(MPI_Datatype type, MPI_Count count)
{
#if defined(MPICH) || defined(MPICH_VERSION)
    return count == 0 && type == MPI_DATATYPE_NULL;
#else
    (void)type;
    (void)count;
    return 0;
#endif
}

/* The sizes of the types of all ranks, into `sizes`, if the MPI library takes them. `*is_named`: one with elements is no derived type. */
static int measure_types(struct kasuri_blocks *blocks, int size, MPI_Count *sizes, int *is_named)
{
    for (int rank = 0; rank < size; rank++) {
        const MPI_Count count = kasuri_count(blocks, rank);
        int is_own = 0;
        sizes[rank] = 0;
        blocks->type = blocks->types[rank];
        if (is_left_out(blocks->type, count))
            continue;
        if (!measure_type(blocks, &is_own))
            return 0;
        *is_named |= is_own && count > 0;
        sizes[rank] = blocks->size;
    }
    blocks->sizes = sizes;
    return 1;
}

int kasuri_measure(struct kasuri_blocks *blocks, int size, MPI_Count *sizes, MPI_Count *most)
{
    int is_named = 0;
    if (blocks->buffer == MPI_IN_PLACE ||
        !(blocks->types ? measure_types(blocks, size, sizes, &is_named) : measure_type(blocks, &is_named)))
        return 0;
    *most = longest(blocks, size);
    /* A derived type may hold addresses; any other needs a buffer. */
    return *most >= 0 && (*most == 0 || blocks->buffer || !is_named);
}

int kasuri_is_refused_alias(const struct kasuri_blocks *out, const struct kasuri_blocks *in, int is_in_place)
{
#if defined(MPICH) || defined(MPICH_VERSION)
    const int is_nothing = !kasuri_is_list(in) && in->count == 0;
    return !is_in_place && !is_nothing && in->buffer == out->buffer && in->type == out->type && in->types == out->types &&
           in->count == out->count && in->counts == out->counts && in->long_counts == out->long_counts;
#else
    (void)out;
    (void)in;
    (void)is_in_place;
    return 0;
#endif
}
