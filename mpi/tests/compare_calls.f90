! All-to-alls of compare.c that are called from Fortran. Handles are Fortran's.
subroutine alltoall_in_fortran(in_place, sendbuf, count, type, recvbuf, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, count, type, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, recvbuf, count, type, comm, ierr)
   else
      call MPI_Alltoall(sendbuf, count, type, recvbuf, count, type, comm, ierr)
   end if
end subroutine alltoall_in_fortran

subroutine alltoallv_in_fortran(in_place, sendbuf, sendcounts, sdispls, type, recvbuf, recvcounts, rdispls, comm, ierr) bind(c)
   use mpi
   use iso_c_binding, only: c_int
   implicit none
   integer(c_int), value :: in_place, type, comm
   integer(c_int) :: sendbuf(*), recvbuf(*)
   integer(c_int) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
   integer(c_int) :: ierr
   if (in_place /= 0) then
      call MPI_Alltoallv(MPI_IN_PLACE, sendcounts, sdispls, MPI_DATATYPE_NULL, recvbuf, recvcounts, rdispls, type, comm, ierr)
   else
      call MPI_Alltoallv(sendbuf, sendcounts, sdispls, type, recvbuf, recvcounts, rdispls, type, comm, ierr)
   end if
end subroutine alltoallv_in_fortran
