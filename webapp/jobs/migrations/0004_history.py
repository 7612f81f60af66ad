import django.db.models.deletion
from django.db import migrations, models


def begin(apps, _editor):
    """Of earlier jobs the rows know when they began and how they ended."""
    Job, Change = apps.get_model("jobs", "Job"), apps.get_model("jobs", "Change")
    rows = []
    for job in Job.objects.only("state", "started", "paused", "ended", "cause").iterator(2000):
        told = [("starting", job.started, ""), ("paused", job.paused, ""), (job.state, job.ended, job.cause)]
        rows += [Change(job=job, state=state, time=time, detail=detail) for state, time, detail in told if time]
    Change.objects.bulk_create(rows, batch_size=2000)


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_job_kind'),
    ]

    operations = [
        migrations.AddField(
            model_name='supervisor',
            name='holds',
            field=models.BooleanField(default=False, help_text='Files that the artifact store lacks lie on its host.'),
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('time', models.DateTimeField()),
                ('state', models.CharField(blank=True, choices=[('queued', 'Queued'), ('starting', 'Starting'), ('running', 'Running'), ('pausing', 'Pausing'), ('paused', 'Paused'), ('stopping', 'Stopping'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], max_length=12)),
                ('phase', models.CharField(blank=True, max_length=20)),
                ('detail', models.CharField(blank=True, help_text='By whom, on which hosts, or why.', max_length=1000)),
                ('attempt', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='jobs.attempt')),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='jobs.job')),
            ],
            options={
                'ordering': ['job', 'time', 'id'],
                'indexes': [models.Index(fields=['job', '-time', '-id'], name='change_newest')],
                'constraints': [models.UniqueConstraint(fields=('attempt', 'phase'), name='change_phase')],
            },
        ),
        migrations.AddIndex(
            model_name="supervisor",
            index=models.Index(
                condition=models.Q(("holds", True)), fields=["attempt"], name="supervisor_holds"
            ),
        ),
        migrations.RunPython(begin, migrations.RunPython.noop),
    ]
