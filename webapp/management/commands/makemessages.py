"""``make messages``: Django's command, which also finds the texts of `streaming`."""

from django.core.management.commands import makemessages

# Errors translate their message where it is shown; of options, it is the second argument that is shown.
KEYWORDS = (
    *(
        "InvalidFilter",
        "InvalidBacktest",
        "InvalidLayer",
        "InvalidMap",
        "InvalidOptions",
        "InvalidPlan",
        "InvalidQuestion",
    ),
    *("InvalidReplay", "InvalidReport", "InvalidSets", "InvalidSketch", "InvalidSpace", "Conflict", "LostAnswer"),
    "LimitReached",
    *("NotDelivered", "TransportError", "BrokenMap", "rule_of", "listed", "check:2", "option:2", "secret:2"),
)


class Command(makemessages.Command):
    """Makes the files of translations."""

    xgettext_options = [*makemessages.Command.xgettext_options, *(f"--keyword={keyword}" for keyword in KEYWORDS)]
