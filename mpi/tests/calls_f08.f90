! The same from the module mpi_f08, without the last argument: equal blocks, and in place; sums and gathered blocks.
program calls_f08
   use mpi_f08
   implicit none
   integer :: rank, ranks, peer, wrong, total, sums, again
   integer, allocatable, asynchronous :: out(:), in(:), counts(:)
   integer, asynchronous :: later(3)
   type(MPI_Request) :: requests(4)

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   out = [(100 * rank + peer, peer = 0, ranks - 1)]
   allocate (in(ranks), source=-1)
   call MPI_Alltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD)
   wrong = count(in /= [(100 * peer + rank, peer = 0, ranks - 1)])
   call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, out, 1, MPI_INTEGER, MPI_COMM_WORLD)
   wrong = wrong + count(out /= in)
   ! What rank r has got from rank p is 100 p + r, so its sum over the ranks is the same of all blocks but for 100 p times the ranks.
   call MPI_Reduce_scatter_block(in, sums, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
   wrong = wrong + merge(0, 1, sums == 100 * rank * ranks + ranks * (ranks - 1) / 2)
   counts = [(1, peer = 1, ranks)]
   call MPI_Reduce_scatter(in, again, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
   wrong = wrong + merge(0, 1, sums == again)
   call MPI_Allgather(rank, 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD)
   wrong = wrong + count(counts /= [(peer, peer = 0, ranks - 1)])
   out = [(100 * rank + peer, peer = 0, ranks - 1)]
   counts = -1
   call MPI_Ialltoall(out, 1, MPI_INTEGER, counts, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(1))
   call MPI_Ialltoall(MPI_IN_PLACE, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(2))
   call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
   call MPI_Waitall(2, requests(:2), MPI_STATUSES_IGNORE)
   ! What has come from the others goes back to them.
   wrong = wrong + count(counts /= [(100 * peer + rank, peer = 0, ranks - 1)]) + count(in /= out)
   counts = 1
   call MPI_Iallreduce(rank, later(1), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
   call MPI_Ireduce_scatter_block(out, later(2), 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2))
   call MPI_Ireduce_scatter(out, later(3), counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(3))
   call MPI_Iallgather(rank, 1, MPI_INTEGER, in, 1, MPI_INTEGER, MPI_COMM_WORLD, requests(4))
   call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
   ! Of what ranks p have for rank r, 100 p + r.
   wrong = wrong + merge(0, 1, later(1) == ranks * (ranks - 1) / 2) + count(later(2:3) /= 50 * ranks * (ranks - 1) + rank * ranks)
   wrong = wrong + count(in /= [(peer, peer = 0, ranks - 1)])
   call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
   if (rank == 0) print '(a, i0, a)', 'fortran: ', total, ' values are wrong'
   call MPI_Finalize()
   if (total > 0) stop 1
end program calls_f08
