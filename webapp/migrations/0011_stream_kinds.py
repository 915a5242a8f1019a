from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webapp', '0010_stream_max_ahead'),
    ]

    operations = [
        migrations.AlterField(
            model_name='stream',
            name='decoder',
            field=models.CharField(help_text='How bytes are read: a kind of docs/decoders.md.', max_length=40, verbose_name='decoder'),
        ),
        migrations.AlterField(
            model_name='stream',
            name='transport',
            field=models.CharField(help_text='How bytes arrive: a kind of docs/transports.md.', max_length=40, verbose_name='transport'),
        ),
    ]
