#!/bin/bash
# slurm_train.sh: a batch script for Slurm. Edit the #SBATCH lines, then: sbatch dev/slurm_train.sh OPTIONS OF train_gpt2
# It needs --out among the options. Shortly before its time is over the run saves, and the job goes
# back into the queue; a run that is done or that failed does not.
#SBATCH --job-name=train_gpt2
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --time=12:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@180
# B: the signal is for this script, 180 s before the end; 180 s must suffice for an update and a checkpoint. TERM
# to the script does the same; where Slurm sends TERM to mpirun too, the ranks end without saving, and the last
# checkpoint counts.
program=${TRAIN_GPT2:-./train_gpt2}
here=${TRAIN_GPT2_DEV:-dev}
# mpirun of Open MPI takes machines and slots from Slurm. Where Slurm has PMIx, `srun --mpi=pmix` does as well.
bash "$here/keep_training.sh" -r 5 -- ${LAUNCH:-mpirun} "$program" "$@" &
keeper=$!
trap 'kill -USR1 $keeper 2>/dev/null' USR1 TERM
wait $keeper
code=$?
while kill -0 $keeper 2>/dev/null; do # the signal ended `wait`, not the run
    wait $keeper
    code=$?
done
if [ $code -eq 75 ]; then
    echo "slurm_train: saved; job $SLURM_JOB_ID goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit $code
