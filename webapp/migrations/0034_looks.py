from django.core.validators import MaxValueValidator
from django.db import migrations, models

HELP = "The colour and the line of its shapes on the map. If it is empty, its number decides."


def look(most):
    """Return the field, which has the numbers up to `most`."""
    return models.PositiveSmallIntegerField(
        blank=True, help_text=HELP, null=True, validators=[MaxValueValidator(most)], verbose_name="look"
    )


class Migration(migrations.Migration):

    dependencies = [
        ("webapp", "0033_stream_max_age"),
    ]

    operations = [
        migrations.AddField(model_name="query", name="look", field=look(31)),
        migrations.AddField(model_name="layer", name="look", field=look(23)),
    ]
