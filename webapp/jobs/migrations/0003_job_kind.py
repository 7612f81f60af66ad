from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_checkpoints'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='kind',
            field=models.CharField(default='train', max_length=10),
        ),
    ]
