#!/bin/sh
# A Slurm of one's own with two nodes on this machine, for tests: cluster.sh start FOLDER, cluster.sh stop FOLDER.
# Everything stands in the folder: keys, sockets, state, logs. Afterwards `export SLURM_CONF=FOLDER/slurm.conf` leads there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
action=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
host=$(hostname -s)

stop() {
    # The order of starting, backwards.
    for daemon in slurmd-one slurmd-two slurmctld munged; do
        if [ -f "$folder/$daemon.pid" ]; then
            kill "$(cat "$folder/$daemon.pid")" 2>/dev/null || true
        fi
    done
    rm -f "$folder"/*.pid
}

configure() {
    # A folder that others may write to would not do for munge's socket and keys.
    chmod 755 "$folder"
    mkdir -p "$folder/state" "$folder/spool-one" "$folder/spool-two" "$folder/munge"
    chmod 700 "$folder/munge"
    head -c 1024 /dev/urandom >"$folder/munge/key"
    chmod 600 "$folder/munge/key"
    cat >"$folder/slurm.conf" <<END
ClusterName=kasuri
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$((port + 2))
SlurmctldPidFile=$folder/slurmctld.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmctldParameters=enable_configless
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmdLogFile=$folder/slurmd-%n.log
SlurmdSpoolDir=$folder/spool-%n
StateSaveLocation=$folder/state
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CryptoType=crypto/munge
MpiDefault=none
# Containers seldom have control groups to give away.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2
SlurmdTimeout=30
KillWait=5
MinJobAge=60
ReturnToService=2
EnforcePartLimits=ALL
MaxArraySize=1001
NodeName=one NodeHostname=$host NodeAddr=127.0.0.1 Port=$port CPUs=2 RealMemory=4000 State=UNKNOWN
NodeName=two NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=2 RealMemory=4000 State=UNKNOWN
PartitionName=debug Nodes=one,two Default=YES MaxTime=60 State=UP
PartitionName=closed Nodes=one,two Default=NO MaxTime=60 State=INACTIVE
END
}

start() {
    if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
        "$here/../../tools/debian-packages.sh" slurmctld slurmd slurm-client munge
    fi
    port=$((20000 + $$ % 20000))
    configure
    /usr/sbin/munged --force --key-file="$folder/munge/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
        --log-file="$folder/munged.log" --seed-file="$folder/munge/seed"
    export SLURM_CONF="$folder/slurm.conf"
    slurmctld
    slurmd -N one
    slurmd -N two
    for _ in $(seq 60); do
        if [ "$(sinfo -h -p debug -t idle -o %D 2>/dev/null)" = 2 ]; then
            exit 0
        fi
        sleep 0.5
    done
    echo "kasuri: the nodes of the test's Slurm do not come up; see the logs in $folder" >&2
    tail -n 5 "$folder"/*.log >&2
    stop
    exit 1
}

case $action in
start) start ;;
stop) stop ;;
*) echo "cluster.sh start|stop FOLDER" >&2; exit 2 ;;
esac
