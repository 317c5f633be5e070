# SPDX-License-Identifier: Apache-2.0

"""Worker processes: each runs cases one after the other and may crash; the supervisor starts another."""
import multiprocessing
import os
import pickle
import signal
import time

STAGES = ("making", "onnxruntime", "reference", "rondo")
# A new process for each worker, whatever threads the former had.
context = multiprocessing.get_context("spawn")


def describe(case):
    """What the summary counts of a case."""
    attributes = sorted({(node.op, name) for node in case.nodes for name in node.attrs})
    return {"ops": [(node.domain, node.op) for node in case.nodes], "opset": case.opset,
            "attributes": attributes}


def make_checker(settings, note_stage=lambda stage: None):
    from check import Checker, KnownDifferences
    from library import Library
    library = Library(settings["library"], settings["device"])
    return Checker(library, KnownDifferences(settings["known"]), settings["half"], note_stage)


def work(settings, connection, place):
    """Answers (first, end) with a report for each index; None ends."""
    import make
    os.nice(settings["nice"])
    if settings["memory_mib"]:
        import resource
        limit = settings["memory_mib"] << 20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def note_stage(stage):
        place[1] = STAGES.index(stage)

    checker = make_checker(settings, note_stage)
    ops = settings["ops"]
    while (task := connection.recv()) is not None:
        for index in range(*task):
            place[0], place[1] = index, 0
            place[2] = int(time.time())
            case = make.make_case(settings["seed"], index, ops, settings["chains"], settings["half"])
            if case is None:
                connection.send((index, {"outcome": "unmade", "ops": []}))
                continue
            result = checker.check(case)
            report = describe(case)
            report.update(outcome=result.outcome, detail=result.detail[:200],
                          compared=result.compared, replayed=result.replayed,
                          known=sorted({f.known for f in result.findings if f.known}),
                          findings=[(f.kind, f.oracle, f.detail[:300]) for f in result.findings
                                    if not f.known])
            connection.send((index, report))
        connection.send((None, None))


class Worker:
    def __init__(self, settings):
        self.settings = settings
        self.task = None
        self.start()

    def start(self):
        self.place = context.Array("q", 3, lock=False)  # index, stage, when it began
        self.connection, other = context.Pipe()
        self.process = context.Process(target=work, args=(self.settings, other, self.place),
                                       daemon=True)
        self.process.start()
        other.close()

    def give(self, task):
        self.task = task
        if task is not None:
            self.place[0], self.place[2] = task[0], int(time.time()) + 60
        self.connection.send(task)

    def is_hanging(self, limit_seconds):
        return self.place[2] > 0 and time.time() - self.place[2] > limit_seconds

    def stop(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


# ---- shrinking ----------------------------------------------------------------------------------

def crashes(settings, case):
    """Whether Rondo ends the process, or hangs, in a child of this one."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            from case import make_model
            from library import Library
            library = Library(settings["library"], settings["device"])
            library.run(make_model(case).SerializeToString(), case.feeds, case.outputs, 3)
        except BaseException:
            os._exit(0)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def shrink_case(settings, index, is_crash, connection):
    import make
    from shrink import name_of, shrink
    os.nice(settings["nice"])
    case = make.make_case(settings["seed"], index, settings["ops"], settings["chains"], settings["half"])
    if is_crash:
        small = shrink(case, lambda c: crashes(settings, c), 60) if crashes(settings, case) else case
        connection.send(pickle.dumps((small, None, None)))
        return
    checker = make_checker(settings)
    first = checker.check(case)
    wanted = name_of(first.findings)

    def still_fails(smaller):
        return bool(wanted & name_of(checker.check(smaller).findings))

    connection.send(pickle.dumps((case, first.expected, [f.detail for f in first.findings])))
    small = shrink(case, still_fails)
    last = checker.check(small)
    connection.send(pickle.dumps((small, last.expected, [f.detail for f in last.findings])))


def run_shrinker(settings, index, is_crash, limit_seconds):
    """(case, expected, details) of the smallest case found in time; None when there is none."""
    ours, theirs = context.Pipe()
    process = context.Process(target=shrink_case, args=(settings, index, is_crash, theirs), daemon=True)
    process.start()
    theirs.close()
    best, until = None, time.time() + limit_seconds
    try:
        while ours.poll(max(0.0, until - time.time())):
            best = pickle.loads(ours.recv())
    except EOFError:
        pass
    process.kill()
    process.join()
    return best
