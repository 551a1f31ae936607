"""A Slurm cluster of this machine alone, for as long as a test needs one."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from processes import PATIENCE, no_signal_ignored, wait_until  # noqa: E402

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "scancel")

CONFIGURATION = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmUser=root
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={port}
SlurmdPort={other_port}
ReturnToService=2
MpiDefault=none
MailProg=/bin/true
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The reason why there can be no cluster here, or the empty string."""
    absent = [program for program in NEEDED if shutil.which(program) is None]
    if absent:
        return f"there is no {', '.join(absent)} (scripts/setup.sh all)"
    if os.geteuid() != 0:
        return "only root can start Slurm's daemons"
    try:
        socket.gethostbyname(socket.gethostname())
    except OSError:
        return "this machine's name has no address"
    return None


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="foretrace-slurm-"))
        self.folder.chmod(0o755)
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        configuration = self.folder / "slurm.conf"
        configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname(), folder=self.folder, port=free_port(), other_port=free_port(), cores=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(configuration)}
        self.daemons = []
        try:
            self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                       f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                       f"--seed-file={self.folder}/munge.seed")
            self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "-D", "-f", configuration)
            self.start("slurmd", "-D", "-f", configuration, "-N", socket.gethostname())
            self.wait_for(lambda: "idle" in self.call("sinfo", "--noheader", "--format=%T"), "an idle node")
        except Exception:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *command):
        with open(self.folder / f"{command[0]}.out", "wb") as out:
            self.daemons.append(subprocess.Popen([str(part) for part in command], stdout=out, stderr=out, env=self.environment,
                                                 preexec_fn=no_signal_ignored))

    def call(self, *command, **options):
        ran = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                             **{"env": self.environment, **options})
        return ran.stdout.strip() if ran.returncode == 0 else ""

    def wait_for(self, condition, what):
        """Raises ChildProcessError if a daemon ends meanwhile."""
        wait_until(lambda: condition() or any(daemon.poll() is not None for daemon in self.daemons), what, every=0.1)
        if not condition():
            raise ChildProcessError(f"a daemon has ended before {what}: " + self.logs())

    def wait_for_jobs(self):
        """Waits until nothing is queued or running."""
        self.wait_for(lambda: not self.call("squeue", "--noheader"), "the end of all jobs")

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-2000:] for path in sorted(self.folder.glob("*.log")))
