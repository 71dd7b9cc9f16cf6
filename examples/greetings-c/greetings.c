/* Every rank but the first sends a greeting to rank 0, which prints them in order. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define LONGEST (100 + MPI_MAX_PROCESSOR_NAME)

int main(int argc, char *argv[])
{
    char greeting[LONGEST], host[MPI_MAX_PROCESSOR_NAME];
    int rank, size, length;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);

    snprintf(greeting, sizeof greeting, "Greetings from process %d of %d on %s!", rank, size, host);
    if (rank != 0) {
        MPI_Send(greeting, (int)strlen(greeting) + 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    } else {
        printf("%s\n", greeting);
        for (int sender = 1; sender < size; sender++) {
            MPI_Recv(greeting, sizeof greeting, MPI_CHAR, sender, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("%s\n", greeting);
        }
    }

    MPI_Finalize();
    return 0;
}
