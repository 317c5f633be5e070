# SPDX-License-Identifier: Apache-2.0

"""Random models of every op through Rondo, ONNX Runtime and the onnx reference evaluator.

    python3 tools/difftest --library build/librondo.so --cases 100000 --seed 7

Needs onnx, onnxruntime and numpy. Every case is made of the seed and its index alone, so that
--only SEED:INDEX repeats one. A case that crashes Rondo ends its worker process, is reported, and
the others go on. Failures are shrunk and written as ONNX test directories.
"""
import argparse
import collections
import copy
import multiprocessing.connection
import os
import pathlib
import pickle
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def parse_arguments():
    parser = argparse.ArgumentParser(prog="tools/difftest", description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="librondo.so")
    parser.add_argument("--device", default="host", help="host, cuda:0, ...")
    parser.add_argument("--dtype", default="fp32", choices=("fp32", "fp16"))
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="index of the first case")
    parser.add_argument("--only", help="SEED:INDEX: one case, told at length")
    parser.add_argument("--ops", default="", help="only these ops or domains, between commas; then no graphs")
    parser.add_argument("--chains", type=float, default=0.25, help="share of graphs of several nodes")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--nice", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1, help="of Rondo in each worker")
    parser.add_argument("--memory", type=int, default=0, help="MiB of address space a worker may take")
    parser.add_argument("--limit", type=int, default=60, help="seconds after which a case hangs")
    parser.add_argument("--out", default="build/difftest", help="where failures are written")
    parser.add_argument("--shrink", type=int, default=20, help="how many failures are shrunk")
    parser.add_argument("--report", help="a markdown file for the summary")
    parser.add_argument("--state", help="a file to go on from when the run is stopped; what failed is repeated")
    parser.add_argument("--known", default=str(HERE / "known.toml"))
    return parser.parse_args()


def run_git(*arguments):
    done = subprocess.run(["git", "-C", str(HERE), *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def find_machine():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = "unknown processor"
    return f"{name}, {os.cpu_count()} processors"


def make_settings(arguments):
    import make
    ops = make.list_ops()
    if arguments.ops:
        wanted = set(arguments.ops.split(","))
        ops = [op for op in ops if op[1] in wanted or op[0] in wanted]
        arguments.chains = 1.0 if wanted == {"graphs"} else 0.0
    if arguments.only:
        arguments.seed, arguments.first = (int(part) for part in arguments.only.split(":"))
        arguments.cases = 1
    if arguments.seed is None:
        arguments.seed = int.from_bytes(os.urandom(4), "little")
    commit = run_git("rev-parse", "--short", "HEAD") or "unknown"
    changed = run_git("status", "--porcelain", "-uno", "--", ":(top,exclude)bench/results")
    return {"library": str(pathlib.Path(arguments.library).resolve()), "device": arguments.device,
            "half": arguments.dtype == "fp16", "seed": arguments.seed, "first": arguments.first,
            "ops": ops, "chains": arguments.chains, "known": arguments.known, "nice": arguments.nice,
            "memory_mib": arguments.memory, "workers": arguments.workers,
            "command": "tools/difftest " + shlex.join(sys.argv[1:]), "machine": find_machine(),
            "commit": commit + ("+" if changed else "")}


class Supervisor:
    CHUNK = 50

    def __init__(self, settings, arguments, summary):
        self.settings, self.arguments, self.summary = settings, arguments, summary
        self.waiting = collections.deque(index for index in range(
            arguments.first, arguments.first + arguments.cases) if index not in summary.finished)
        self.done = 0

    def take_chunk(self):
        """Cases one after the other, up to CHUNK of them."""
        if not self.waiting:
            return None
        first = end = self.waiting.popleft()
        while self.waiting and self.waiting[0] == end + 1 and end + 1 - first < self.CHUNK:
            end = self.waiting.popleft()
        return first, end + 1

    def run(self):
        from worker import Worker
        workers = [Worker(self.settings) for _ in range(min(self.arguments.workers, len(self.waiting)))]
        for worker in workers:
            worker.give(self.take_chunk())
        told = began = time.time()
        while workers:
            ready = multiprocessing.connection.wait([w.connection for w in workers], timeout=5)
            for worker in list(workers):
                if worker.connection in ready:
                    self.receive(worker, workers)
                elif worker.is_hanging(self.arguments.limit):
                    self.replace(worker, "hang")
            if time.time() - told > 30:
                told = time.time()
                self.save(told - began)
                print(f"{self.done} of {self.arguments.cases}, {len(self.summary.failures)} failed, "
                      f"{self.done / (told - began):.0f} a second", flush=True)
        return time.time() - began

    def receive(self, worker, workers):
        try:
            while worker.connection.poll():
                index, report = worker.connection.recv()
                if index is not None:
                    self.done += 1
                    self.summary.add(index, report)
                    self.tell_failure(report["outcome"])
                    continue
                worker.give(self.take_chunk())
                if worker.task is None:
                    worker.process.join()
                    workers.remove(worker)
                    return
        except (EOFError, ConnectionResetError):
            self.replace(worker, "crash")

    def save(self, seconds):
        if self.arguments.state:
            kept = copy.copy(self.summary)
            kept.seconds += seconds
            partial = pathlib.Path(self.arguments.state + ".part")
            partial.write_bytes(pickle.dumps((describe_run(self.settings), kept)))
            partial.replace(self.arguments.state)

    def tell_failure(self, outcome):
        """At once: who waits for the end of a long run may look into it meanwhile."""
        if outcome == "failed":
            print(self.summary.list_failures(self.settings)[-1][:300], flush=True)

    def replace(self, worker, kind):
        """A process that ended or hangs: the case it was at is the finding, the rest goes on."""
        from worker import STAGES
        import make
        index, stage = worker.place[0], STAGES[worker.place[1]]
        case = make.make_case(self.settings["seed"], index, self.settings["ops"],
                              self.settings["chains"], self.settings["half"])
        self.done += 1
        self.summary.add_crash(index, stage, kind, "+".join(case.ops) if case else "?")
        self.tell_failure("failed" if stage == "rondo" else "")
        worker.stop()
        worker.start()
        worker.give((index + 1, worker.task[1]))


def describe_run(settings):
    """What two parts of a run must have in common."""
    return {name: settings[name] for name in ("device", "half", "seed", "first", "chains", "ops")}


def load_summary(settings, path):
    from summary import Summary
    if not path or not os.path.exists(path):
        return Summary(settings["ops"])
    with open(path, "rb") as file:
        described, summary = pickle.load(file)
    if described != describe_run(settings):
        sys.exit(f"{path} is of another run: {described['seed']} on {described['device']}")
    summary.repeat_failed()
    return summary


def save_failures(settings, arguments, summary):
    from case import make_model, save_test
    from worker import run_shrinker
    for index, names, findings in summary.failures[:arguments.shrink]:
        is_crash = findings[0][0] in ("crash", "hang")
        best = run_shrinker(settings, index, is_crash, 120)
        if best is None:
            print(f"{settings['seed']}:{index}: could not be made again")
            continue
        case, expected, details = best
        directory = pathlib.Path(arguments.out) / f"{settings['seed']}_{index}_{'_'.join(case.ops[:3])}"
        save_test(case, make_model(case), expected, directory)
        print(f"{settings['seed']}:{index}: {directory}")
        for detail in (details or ["crash or hang"])[:3]:
            print(f"    {detail}")


def tell_one(settings, arguments):
    """One case at length."""
    import make
    import values
    from case import make_model, save_test
    from worker import make_checker
    case = make.make_case(settings["seed"], arguments.first, settings["ops"], settings["chains"], settings["half"])
    if case is None:
        sys.exit("the draws made no case")
    print(f"opset {case.opset}")
    for node in case.nodes:
        print(f"  {', '.join(node.outputs)} = {node.op}({', '.join(node.inputs)}) {node.attrs}")
    for kind, arrays in (("feed", case.feeds), ("constant", case.constants)):
        for name, array in arrays.items():
            print(f"  {kind} {name} {values.tell(array)}")
    directory = pathlib.Path(arguments.out) / f"{settings['seed']}_{arguments.first}"
    save_test(case, make_model(case), None, directory)
    print(f"saved as {directory}", flush=True)
    result = make_checker(settings).check(case)
    print(f"{result.outcome} {result.detail}")
    for finding in result.findings:
        print(f"  {finding.kind} against {finding.oracle} "
              f"{'(' + finding.known + ') ' if finding.known else ''}{finding.detail}")
        if finding.bad is not None:
            print(f"    got  {finding.got.flatten()[:24].tolist()}")
            print(f"    want {finding.want.flatten()[:24].tolist()}")
    return result.outcome == "failed"


def main():
    arguments = parse_arguments()
    # Before any library of threads is loaded, also in the workers.
    os.environ.setdefault("RONDO_NUM_THREADS", str(arguments.threads))
    os.environ.setdefault("OMP_NUM_THREADS", str(arguments.threads))
    sys.path.insert(0, str(HERE))
    settings = make_settings(arguments)
    if arguments.only:
        return tell_one(settings, arguments)
    from check import KnownDifferences
    reasons = {entry["name"]: entry["reason"] for entry in KnownDifferences(arguments.known).entries}
    reasons["ill-conditioned"] = ("the oracle's own result moves as much when the inputs move by a "
                                        "unit in the last place")
    reasons["oracle-alone-on-graph"] = "the other oracle agrees with Rondo on every output"
    print(f"seed {settings['seed']}, {len(settings['ops'])} ops", flush=True)
    summary = load_summary(settings, arguments.state)
    supervisor = Supervisor(settings, arguments, summary)
    seconds = supervisor.run()
    supervisor.save(seconds)
    summary.finish(seconds)
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "failures.txt").write_text("".join(line + "\n" for line in summary.list_failures(settings)))
    save_failures(settings, arguments, summary)
    print(summary.write(settings, reasons, False))
    if arguments.report:
        title = f"# Differential test of ops on {settings['device']}\n\n"
        pathlib.Path(arguments.report).write_text(title + summary.write(settings, reasons, True))
    return len(summary.failures) > 0


if __name__ == "__main__":
    sys.exit(main())
