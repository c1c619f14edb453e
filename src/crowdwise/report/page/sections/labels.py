"""The label of each task, and the tasks that workers contest most."""

from crowdwise.report.facts import Facts
from crowdwise.report.facts.tasks import TaskFacts
from crowdwise.report.page.charts import bar_chart
from crowdwise.report.page.html import Markup, clean, name, shortened, tag
from crowdwise.report.page.sections.maps import tasks_on_map
from crowdwise.report.page.sheet import Column, Sheet, fixed_table, note, section
from crowdwise.report.page.words import share

LETTERS = 160  # of a task's name


def labels(facts: Facts, sheet: Sheet) -> Markup:
    """Confidence, contested tasks, and the table of all tasks."""
    tasks = facts.tasks
    return section(
        "labels",
        "The label of each task",
        tag("p", words_of(facts)),
        tag(
            "div",
            tag("div", confidence_chart(tasks, sheet), tasks_on_map(facts, sheet)),
            contested_table(facts),
            class_="grid",
        ),
        tag("h3", "All tasks"),
        note(tasks.note),
        sheet.table(
            "tasks",
            f"Label of each task by {facts.method}",
            columns_of(tasks),
            search="Search tasks",
            choose="Label",
            order=(2, True),
        ),
    )


def words_of(facts: Facts) -> str:
    """What the method makes of the tasks as a whole."""
    tasks = facts.tasks
    return (
        f"{facts.method} gives each task its most probable label. It expects "
        f"{share(tasks.mean_confidence, 1)} of them to be right; {tasks.n_unsure:,} of "
        f"{tasks.n_tasks:,} are less than {share(tasks.sure)} sure, {tasks.n_tied:,} are tied, and "
        f"{tasks.n_overruled:,} are not what most workers of the task said."
    )


def confidence_chart(tasks: TaskFacts, sheet: Sheet) -> Markup:
    """How sure the labels are."""
    counts = tasks.histogram.tolist()
    edges = [k / len(counts) for k in range(len(counts) + 1)]
    first = next((k for k, n in enumerate(counts) if n), 0)
    names = [share(low) for low in edges[first:-1]]
    reading = f"{share(1 - tasks.n_unsure / max(tasks.n_tasks, 1))} of the tasks are sure."
    picture = bar_chart(
        names, counts[first:], "confidence, from", f"Tasks by confidence. {reading}"
    )
    rows = list(zip(edges[first:-1], edges[first + 1 :], counts[first:], strict=True))
    return sheet.chart(
        "confidence", "How sure the labels are", reading, picture, ["from", "to", "tasks"], rows
    )


def contested_table(facts: Facts) -> Markup:
    """The tasks whose labels are split most evenly."""
    tasks, classes = facts.tasks, facts.classes.name
    if not len(tasks.contested):
        return tag("p", "No task is contested: all labels of a task are alike.", class_="note")
    rows = []
    for at in tasks.contested[:12].tolist():
        votes = tasks.votes[[at]].tocoo()
        counted = sorted(
            zip(votes.coords[1].tolist(), votes.data.tolist(), strict=True), key=lambda c: -c[1]
        )
        split = [
            [", " if place else "", f"{int(times)}\u00a0\u00d7\u00a0", name(classes[number], 20)]
            for place, (number, times) in enumerate(counted)
        ]
        label = name(classes[int(tasks.label[at])], 20)
        sure = (share(float(tasks.confidence[at])), "right")
        rows.append((name(tasks.name[at], 22), split, label, sure))
    return fixed_table(
        "Most contested tasks", ("task", "labels given", "label chosen", "sure"), rows
    )


def columns_of(tasks: TaskFacts) -> list[Column]:
    """The table of tasks."""
    columns = [
        Column("Task", "name", [shortened(clean(one), LETTERS) for one in tasks.name]),
        Column("Label", "class", tasks.label),
        Column("Confidence", "share", tasks.confidence, about="how sure the method is"),
        Column("Labels", "count", tasks.n_labels, about="annotations of the task"),
        Column("Agree", "share", tasks.agreement, about="labels that are the one chosen"),
        Column("Given", "votes", tasks.votes, about="how many labels of each class"),
    ]
    if tasks.truth is not None:
        columns.append(Column("Truth", "class", tasks.truth, about="as far as it is known"))
    return columns
