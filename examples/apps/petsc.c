/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Poisson's equation on a cube, solved by PETSc as its options say: conjugate gradients with
 * whatever preconditioner. `beowire bench apps` compiles and starts it; the normal build does not.
 * Options: -side N of the cube, -turns N solved, and PETSc's own.
 */
#include <petscdmda.h>
#include <petscksp.h>

/* Seven points: the number of neighbours less those. */
static PetscErrorCode matrix_fill(DM grid, Mat matrix)
{
	static const int steps[6][3] = {{-1, 0, 0}, {1, 0, 0},	{0, -1, 0},
					{0, 1, 0},  {0, 0, -1}, {0, 0, 1}};
	DMDALocalInfo at;

	PetscCall(DMDAGetLocalInfo(grid, &at));
	for (PetscInt k = at.zs; k < at.zs + at.zm; k++)
		for (PetscInt j = at.ys; j < at.ys + at.ym; j++)
			for (PetscInt i = at.xs; i < at.xs + at.xm; i++) {
				MatStencil row = {.k = k, .j = j, .i = i}, columns[7] = {row};
				PetscScalar values[7] = {6};
				PetscInt n = 1;

				for (int step = 0; step < 6; step++) {
					MatStencil to = {.k = k + steps[step][0],
							 .j = j + steps[step][1],
							 .i = i + steps[step][2]};

					if (to.k < 0 || to.k >= at.mz || to.j < 0 ||
					    to.j >= at.my || to.i < 0 || to.i >= at.mx)
						continue;
					values[n] = -1;
					columns[n++] = to;
				}
				PetscCall(MatSetValuesStencil(matrix, 1, &row, n, columns, values,
							      INSERT_VALUES));
			}
	PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
	PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));
	return 0;
}

/* Solves it with a solver made anew, so that what prepares a preconditioner counts. */
static PetscErrorCode turn_make(DM grid, Mat matrix, Vec right, Vec solution, PetscInt *iterations)
{
	KSP solver;

	PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
	PetscCall(KSPSetType(solver, KSPCG));
	PetscCall(KSPSetOperators(solver, matrix, matrix));
	PetscCall(KSPSetDM(solver, grid));
	PetscCall(KSPSetDMActive(solver, PETSC_FALSE));
	PetscCall(KSPSetFromOptions(solver));
	PetscCall(VecSet(solution, 0));
	PetscCall(KSPSolve(solver, right, solution));
	PetscCall(KSPGetIterationNumber(solver, iterations));
	PetscCall(KSPDestroy(&solver));
	return 0;
}

static PetscErrorCode solve(PetscInt side, PetscInt turns)
{
	PetscInt iterations = 0;
	double began_s, took_s;
	Vec right, solution;
	PetscReal norm;
	Mat matrix;
	DM grid;

	PetscCall(DMDACreate3d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE,
			       DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, side, side, side, PETSC_DECIDE,
			       PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, NULL, &grid));
	PetscCall(DMSetUp(grid));
	PetscCall(DMCreateMatrix(grid, &matrix));
	PetscCall(matrix_fill(grid, matrix));
	PetscCall(MatSetOption(matrix, MAT_SPD, PETSC_TRUE));
	PetscCall(DMCreateGlobalVector(grid, &right));
	PetscCall(VecDuplicate(right, &solution));
	PetscCall(VecSet(right, 1));
	PetscCall(turn_make(grid, matrix, right, solution, &iterations));
	PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
	began_s = MPI_Wtime();
	for (PetscInt turn = 0; turn < turns; turn++)
		PetscCall(turn_make(grid, matrix, right, solution, &iterations));
	PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
	took_s = MPI_Wtime() - began_s;
	PetscCall(VecNorm(solution, NORM_2, &norm));
	PetscCall(PetscPrintf(PETSC_COMM_WORLD,
			      "{\"time_s\": %.9f, \"norm\": %.17g, \"iterations\": %d}\n", took_s,
			      (double)norm, (int)iterations));
	PetscCall(VecDestroy(&solution));
	PetscCall(VecDestroy(&right));
	PetscCall(MatDestroy(&matrix));
	PetscCall(DMDestroy(&grid));
	return 0;
}

int main(int argc, char **argv)
{
	PetscInt side = 40, turns = 1;

	PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
	PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL));
	PetscCall(PetscOptionsGetInt(NULL, NULL, "-turns", &turns, NULL));
	PetscCall(solve(side, turns));
	PetscCall(PetscFinalize());
	return 0;
}
