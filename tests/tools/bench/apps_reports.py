# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What applications of Debian 12 printed, shortened where `bench apps` does not look."""

LAMMPS = """\
LAMMPS (29 Sep 2021 - Update 2)
OMP_NUM_THREADS environment is not set. Defaulting to 1 thread. (src/comm.cpp:98)
  using 1 OpenMP thread(s) per MPI task
Setting up Verlet run ...
  Unit style    : lj
  Current step  : 0
  Time step     : 0.005
Per MPI rank memory allocation (min/avg/max) = 7.885 | 7.885 | 7.885 Mbytes
Step Temp PotEng TotEng
       0 1.44 -6.77336805324 -4.61343555324
     300 0.746242859797 -5.74196204185 -4.62263273229
Loop time of 1.93158 on 2 procs for 300 steps with 32000 atoms

Performance: 67095.468 tau/day, 155.314 timesteps/s
81.8% CPU use with 2 MPI tasks x 1 OpenMP threads
Total wall time: 0:00:02
"""

LAMMPS_2024 = LAMMPS.replace(
    "Step Temp PotEng TotEng ", "   Step          Temp          PotEng         TotEng    "
)
"""As newer versions set the heading of their table."""

GROMACS = """\
Started mdrun on rank 0 Tue Nov 24 01:51:41 2026

           Step           Time
              0        0.00000

   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    6.87920e+04   -1.10110e+05    2.69122e+03   -3.86267e+04    4.67414e+04
   Total Energy  Conserved En.    Temperature Pressure (bar)
    8.11474e+03    8.11474e+03    8.65743e+02    6.14596e+04

DD  step 39 load imb.: force  3.2%

           Step           Time
            500        1.00000

   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    1.58546e+04   -9.57826e+04    1.40222e+03   -7.85258e+04    3.07345e+04
   Total Energy  Conserved En.    Temperature Pressure (bar)
   -4.77913e+04    9.63005e+03    5.69262e+02    5.88083e+03

\t<======  ###############  ==>
\t<====  A V E R A G E S  ====>
\t<==  ###############  ======>

\tStatistics over 501 steps using 6 frames

   Energies (kJ/mol)
        LJ (SR)   Coulomb (SR)   Coul. recip.      Potential    Kinetic En.
    2.67354e+04   -9.45983e+04    1.83609e+03   -6.60268e+04    4.08377e+04
   Total Energy  Conserved En.    Temperature Pressure (bar)
   -2.51891e+04    9.37772e+03    7.56394e+02    1.97329e+04

               Core t (s)   Wall t (s)        (%)
       Time:        6.357        3.179      200.0
                 (ns/day)    (hour/ns)
Performance:       27.236        0.881
Finished mdrun on rank 0 Tue Nov 24 01:51:44 2026
"""

HPCC = """\
Begin of PTRANS section.
TIME   M     N    MB  NB  P   Q     TIME   CHECK   GB/s   RESID
---- ----- ----- --- --- --- --- -------- ------ -------- -----
WALL   600   600  80  80   2   1     0.00 PASSED    2.000  0.00
CPU    600   600  80  80   2   1     0.00 PASSED    4.571  0.00
WALL   600   600  80  80   2   1     0.00 PASSED    4.000  0.00
CPU    600   600  80  80   2   1     0.00 PASSED    6.167  0.00
WALL   600   600  80  80   2   1     0.00 PASSED    5.000  0.00
CPU    600   600  80  80   2   1     0.00 PASSED    6.167  0.00
End of PTRANS section.
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0073728 ...... PASSED
Begin of Summary section.
Success=1
HPL_time=0.243088
HPL_XnormI=7.60961
HPL_N=1200
PTRANS_GBs=2.83125
PTRANS_residual=0
MPIRandomAccess_LCG_Errors=0
MPIRandomAccess_Errors=0
MPIFFT_N=131072
MPIFFT_Gflops=8.0
RandomlyOrderedRingLatency_usec=0.235877
End of Summary section.
"""

PETSC = '{"time_s": 0.050888779, "norm": 11015.992582939114, "iterations": 73}\n'
HDF5 = '{"time_s": 0.065349178, "hash": 28958309833065}\n'
TRIDIAGONAL = '{"program": "tridiagonal", "checksum": "0fe1d2c3b4a59687", "time_ns": 1500000000}\n'
