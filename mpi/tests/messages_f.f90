! Single messages from Fortran: 3 integers to the next rank (tag 1), 2 to the rank before (tag 2), 1 to rank 0 (tag 3).
program messages
   use mpi
   implicit none
   integer :: ierr, rank, ranks, i, requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE), out(3), in(3), wrong

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
   out = rank
   wrong = 0
   call MPI_Irecv(in, 3, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, requests(1), ierr)
   call MPI_Isend(out, 3, MPI_INTEGER, mod(rank + 1, ranks), 1, MPI_COMM_WORLD, requests(2), ierr)
   call MPI_Waitall(2, requests, statuses, ierr)
   if (statuses(MPI_SOURCE, 1) /= mod(rank + ranks - 1, ranks) .or. any(in /= statuses(MPI_SOURCE, 1))) wrong = wrong + 1
   call MPI_Sendrecv(out, 2, MPI_INTEGER, mod(rank + ranks - 1, ranks), 2, in, 2, MPI_INTEGER, mod(rank + 1, ranks), 2, &
                     MPI_COMM_WORLD, status, ierr)
   if (status(MPI_TAG) /= 2 .or. in(1) /= mod(rank + 1, ranks)) wrong = wrong + 1
   if (rank > 0) then
      call MPI_Isend(out, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, requests(1), ierr)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
      if (requests(1) /= MPI_REQUEST_NULL) wrong = wrong + 1
   else
      do i = 1, ranks - 1
         call MPI_Recv(in, 1, MPI_INTEGER, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, status, ierr)
         if (in(1) /= status(MPI_SOURCE)) wrong = wrong + 1
      end do
   end if
   call MPI_Finalize(ierr)
   if (wrong > 0) stop 1
end program messages
