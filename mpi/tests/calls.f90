! All-to-alls from Fortran: what arrives is known by a formula. Prints how many values are wrong.
program calls
   use mpi
   implicit none
   integer :: ierr, rank, ranks, half, wrong, total

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
   call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierr)
   wrong = 0
   call exchange(MPI_COMM_WORLD)
   call exchange(half)
   call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a, i0, a)', 'fortran: ', total, ' values are wrong'
   call MPI_Comm_free(half, ierr)
   call MPI_Finalize(ierr)
   if (total > 0) stop 1

contains

   ! The value that goes from one rank to another, at a place of its block.
   integer function value(from, to, place)
      integer, intent(in) :: from, to, place
      value = 10000 * from + 100 * to + place
   end function value

   subroutine exchange(comm)
      integer, intent(in) :: comm
      integer :: me, size, status
      call MPI_Comm_rank(comm, me, status)
      call MPI_Comm_size(comm, size, status)
      call equal_blocks(comm, me, size)
      call in_place(comm, me, size)
      call unequal_blocks(comm, me, size)
      call columns(comm, me, size)
      call types_of_ranks(comm, me, size)
      call without_waiting(comm, me, size)
   end subroutine exchange

   subroutine equal_blocks(comm, me, size)
      integer, intent(in) :: comm, me, size
      integer :: out(3, 0:size - 1), in(3, 0:size - 1), peer, i, status
      do peer = 0, size - 1
         out(:, peer) = [(value(me, peer, i), i = 1, 3)]
      end do
      in = -1
      call MPI_Alltoall(out, 3, MPI_INTEGER, in, 3, MPI_INTEGER, comm, status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      do peer = 0, size - 1
         wrong = wrong + count(in(:, peer) /= [(value(peer, me, i), i = 1, 3)])
      end do
   end subroutine equal_blocks

   subroutine in_place(comm, me, size)
      integer, intent(in) :: comm, me, size
      integer :: both(2, 0:size - 1), peer, i, status
      do peer = 0, size - 1
         both(:, peer) = [(value(me, peer, i), i = 1, 2)]
      end do
      call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, both, 2, MPI_INTEGER, comm, status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      do peer = 0, size - 1
         wrong = wrong + count(both(:, peer) /= [(value(peer, me, i), i = 1, 2)])
      end do
   end subroutine in_place

   ! Rank r sends mod(r + peer, 4) reals to a peer, so none to some.
   subroutine unequal_blocks(comm, me, size)
      integer, intent(in) :: comm, me, size
      double precision :: out(4, 0:size - 1), in(4, 0:size - 1)
      integer :: counts(0:size - 1), places(0:size - 1), peer, i, status
      do peer = 0, size - 1
         counts(peer) = mod(me + peer, 4)
         places(peer) = 4 * peer
         out(:, peer) = [(dble(value(me, peer, i)), i = 1, 4)]
      end do
      in = -1
      call MPI_Alltoallv(out, counts, places, MPI_DOUBLE_PRECISION, in, counts, places, MPI_DOUBLE_PRECISION, comm, status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      do peer = 0, size - 1
         do i = 1, 4
            if (i <= counts(peer)) then
               if (nint(in(i, peer)) /= value(peer, me, i)) wrong = wrong + 1
            else if (nint(in(i, peer)) /= -1) then
               wrong = wrong + 1
            end if
         end do
      end do
   end subroutine unequal_blocks

   ! A row of a matrix: an element of every column.
   subroutine columns(comm, me, size)
      integer, intent(in) :: comm, me, size
      integer :: out(0:size - 1, 5), in(0:size - 1, 5), row, resized, peer, i, status
      integer(kind=MPI_ADDRESS_KIND) :: extent
      call MPI_Type_vector(5, 1, size, MPI_INTEGER, row, status)
      extent = 4
      call MPI_Type_create_resized(row, 0_MPI_ADDRESS_KIND, extent, resized, status)
      call MPI_Type_commit(resized, status)
      do i = 1, 5
         out(:, i) = [(value(me, peer, i), peer = 0, size - 1)]
      end do
      in = -1
      call MPI_Alltoall(out, 1, resized, in, 1, resized, comm, status)
      do i = 1, 5
         wrong = wrong + count(in(:, i) /= [(value(peer, me, i), peer = 0, size - 1)])
      end do
      call MPI_Type_free(resized, status)
      call MPI_Type_free(row, status)
   end subroutine columns

   ! Integers to even ranks and pairs of halves of them to odd ones; the places are in bytes.
   subroutine types_of_ranks(comm, me, size)
      integer, intent(in) :: comm, me, size
      integer :: out(0:size - 1), in(0:size - 1), places(0:size - 1), peer, status
      integer :: sent(0:size - 1), received(0:size - 1), sent_types(0:size - 1), received_types(0:size - 1)
      do peer = 0, size - 1
         out(peer) = value(me, peer, 7)
         places(peer) = 4 * peer
         sent(peer) = 1 + mod(peer, 2)
         sent_types(peer) = merge(MPI_INTEGER, MPI_INTEGER2, mod(peer, 2) == 0)
      end do
      received = 1 + mod(me, 2)
      received_types = merge(MPI_INTEGER, MPI_INTEGER2, mod(me, 2) == 0)
      in = -1
      call MPI_Alltoallw(out, sent, places, sent_types, in, received, places, received_types, comm, status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      wrong = wrong + count(in /= [(value(peer, me, 7), peer = 0, size - 1)])
   end subroutine types_of_ranks

   ! Equal and unequal blocks at a time.
   subroutine without_waiting(comm, me, size)
      integer, intent(in) :: comm, me, size
      integer, asynchronous :: out(3, 0:size - 1), in(3, 0:size - 1), again(3, 0:size - 1)
      integer :: counts(0:size - 1), places(0:size - 1), requests(2), peer, i, status
      do peer = 0, size - 1
         out(:, peer) = [(value(me, peer, i), i = 1, 3)]
         places(peer) = 3 * peer
      end do
      in = -1
      again = -1
      counts = 3
      call MPI_Ialltoall(out, 3, MPI_INTEGER, in, 3, MPI_INTEGER, comm, requests(1), status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      call MPI_Ialltoallv(out, counts, places, MPI_INTEGER, again, counts, places, MPI_INTEGER, comm, requests(2), status)
      if (status /= MPI_SUCCESS) wrong = wrong + 1
      if (me == 0) then
         call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, status)
      else
         call MPI_Waitany(2, requests, i, MPI_STATUS_IGNORE, status)
         call MPI_Wait(requests(3 - i), MPI_STATUS_IGNORE, status)
      end if
      if (any(requests /= MPI_REQUEST_NULL)) wrong = wrong + 1
      do peer = 0, size - 1
         wrong = wrong + count(in(:, peer) /= [(value(peer, me, i), i = 1, 3)]) + count(again(:, peer) /= in(:, peer))
      end do
   end subroutine without_waiting
end program calls
