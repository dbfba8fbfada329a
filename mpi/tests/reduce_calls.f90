! Collectives of reduce.c that are called from Fortran. Handles are Fortran's.
subroutine allreduce_in_fortran(in_place, sendbuf, recvbuf, count, type, op, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, count, type, op, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Allreduce(MPI_IN_PLACE, recvbuf, count, type, op, comm, ierr)
   else
      call MPI_Allreduce(sendbuf, recvbuf, count, type, op, comm, ierr)
   end if
end subroutine allreduce_in_fortran

subroutine reduce_scatter_block_in_fortran(in_place, sendbuf, recvbuf, count, type, op, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, count, type, op, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Reduce_scatter_block(MPI_IN_PLACE, recvbuf, count, type, op, comm, ierr)
   else
      call MPI_Reduce_scatter_block(sendbuf, recvbuf, count, type, op, comm, ierr)
   end if
end subroutine reduce_scatter_block_in_fortran

subroutine reduce_scatter_in_fortran(in_place, sendbuf, recvbuf, counts, type, op, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, type, op, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: counts(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Reduce_scatter(MPI_IN_PLACE, recvbuf, counts, type, op, comm, ierr)
   else
      call MPI_Reduce_scatter(sendbuf, recvbuf, counts, type, op, comm, ierr)
   end if
end subroutine reduce_scatter_in_fortran

subroutine allgather_in_fortran(in_place, sendbuf, count, type, recvbuf, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, count, type, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recvbuf, count, type, comm, ierr)
   else
      call MPI_Allgather(sendbuf, count, type, recvbuf, count, type, comm, ierr)
   end if
end subroutine allgather_in_fortran
