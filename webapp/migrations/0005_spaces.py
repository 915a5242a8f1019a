"""Spaces; what there was before lies on earth."""

import django.db.models.deletion
from django.db import migrations, models

EARTH = {
    "dimensions": [
        {"name": "longitude", "unit": "deg", "lo": -180.0, "hi": 180.0, "wraps": True},
        {"name": "latitude", "unit": "deg", "lo": -90.0, "hi": 90.0, "wraps": False},
        {"name": "altitude", "unit": "m", "lo": -12000.0, "hi": 1000000.0, "wraps": False},
    ],
    "geographic": True,
}


def make_earth(apps, _):
    """Make the built-in space."""
    apps.get_model("webapp", "Space").objects.get_or_create(
        name="earth", defaults={"title": "Earth", "definition": EARTH}
    )


class Migration(migrations.Migration):

    dependencies = [
        ("webapp", "0004_filters"),
    ]

    operations = [
        migrations.CreateModel(
            name="Space",
            fields=[
                ("name", models.CharField(help_text="Fixed once saved.", max_length=40, primary_key=True, serialize=False, verbose_name="name")),
                ("title", models.CharField(blank=True, max_length=80, verbose_name="title")),
                ("definition", models.JSONField(help_text='For instance {"dimensions": [{"name": "price", "unit": "USD", "lo": 0, "hi": 10000}]}.', verbose_name="definition")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.RunPython(make_earth, migrations.RunPython.noop),
        migrations.AddField(
            model_name="stream",
            name="space",
            field=models.ForeignKey(default="earth", help_text="Fixed once saved.", on_delete=django.db.models.deletion.PROTECT, related_name="streams", to="webapp.space", verbose_name="space"),
        ),
        migrations.AddField(
            model_name="query",
            name="space",
            field=models.ForeignKey(default="earth", editable=False, on_delete=django.db.models.deletion.PROTECT, related_name="queries", to="webapp.space", verbose_name="space"),
        ),
        migrations.AlterField(
            model_name="layer",
            name="space",
            field=models.ForeignKey(editable=False, on_delete=django.db.models.deletion.PROTECT, related_name="layers", to="webapp.space", verbose_name="space"),
        ),
        migrations.AddField(
            model_name="event",
            name="bounds",
            field=models.JSONField(default=list, verbose_name="bounds"),
        ),
    ]
