import type { Command } from 'commander';
import { EXIT, MillraceError } from '../../core/errors.ts';
import { parseTarget } from '../../core/route.ts';
import { Checkpoint } from '../../replay/checkpoint.ts';
import { dryRun, type DryRun } from '../../replay/dry-run.ts';
import { type Finished, finishedBefore } from '../../replay/finished.ts';
import { asOwner } from '../as-owner.ts';
import { resolvedConfigOf } from '../config-options.ts';
import { closing, type Io, note, print, printTable } from '../io.ts';
import { openerOf } from '../key-options.ts';
import { commandOf } from '../options.ts';
import { withPlaces } from '../places.ts';
import { REPLAY_OPTIONS, type ReplayFlags, replayOrder, type ReplayOrder } from './options.ts';
import { ReplayProgress, type ReplaySummary, runReplay } from './run.ts';
import { ReplayStore, replayWork, type ReplayWork } from './work.ts';

const HELP = `
Examples:
  millrace replay ./data/archive --to hubs --type labtest. --since 2026-11-01 --until 2026-11-07 --dry-run
  millrace replay ./data/archive --to hubs --type labtest. --since 2026-11-01 --until 2026-11-07 --rate 500/s
  millrace replay ./data/archive --to hubs … --resume       after an interruption: the same command, and --resume
  millrace replay journal --to topics:new-topic             what the journal still holds, be it a topic of a fleet
  millrace replay dead-letters --sink hubs --to archive     a copy; \`dead-letters retry\` redelivers them instead
  millrace replay ./from-elsewhere --routes --pseudonymise --config test-system.yaml

An input is an archive (also its open files), a file, or a folder of other files. Files of other programs may have one JSON event a
line, several, arrays of them, or {team}/{user}/{time}#{type}#{key}.json with one event each; gzip and zstd by name or first bytes. A
file in a folder whose name does not end in .ndjson, .jsonl or .json is read when it begins with JSON; others are passed over and named.
For messages with the event inside (--body-at /payload --id-at /id) the options take JSON Pointers. Events that come in later are not
replayed.
Messages to brokers and endpoints carry \`replay-id\` and their original \`idempotency-key\`; an event without one gets the hash of its
bytes. The inputs are never changed. Sealed records are opened with the keys of the config, or with --keys.

A replay opens its own connections to the sinks beside a running receiver. While more than 1,000 live events wait for one of its
sinks, the replay waits too (--no-yield turns that off). The progress of each sink is on disk: --resume continues there, also after
kill -9, and sends again what was in flight. After the end --resume sends nothing, and without --resume everything is sent again; a
replay of named users (--user, --map-user) is not remembered.

--map-user and --pseudonymise replace ids (team, user, client user) in the envelope and the body, with HMAC-SHA256 and your key, and
remove the signature headers. Other personal data in a body stays.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 interrupted (use --resume), or done except for the listed problems.`;

export function replayCommand(io: Io): Command {
  return commandOf('replay', REPLAY_OPTIONS, HELP)
    .description('send archived, journaled, quarantined or dead-lettered events to sinks again, resumable')
    .argument('<inputs...>', 'archive folders, files and URLs, journal, quarantine, dead-letters')
    .action(async (inputs: string[], flags: ReplayFlags) => {
      const loaded = asOwner(await resolvedConfigOf(flags, io));
      const order = replayOrder(inputs, flags, loaded.config, io);
      const finished = flags.resume === true ? finishedOf(order) : null;
      if (finished !== null) return reportFinished(finished, flags, io);
      await using store = closing(new ReplayStore(loaded, io.signal));
      const opener = await openerOf({ ...flags, config: loaded.file }, io, 'nothing');
      const onPassedOver = (root: string, files: number): void =>
        note(io, `${root}: ${files} files skipped: by the manifest they hold nothing that matches`);
      const onChanged = (where: string): void =>
        note(io, `${where} has changed: it is replayed again from its first line, under the same ids`);
      await withPlaces(loaded.config.storage, async (places) => {
        const ignored = new ReplayProgress(io, 0);
        const onIgnored = (where: string, reason: string): void =>
          ignored.problem({ where, reason: `passed over: ${reason}` });
        const on = { onPassedOver, onIgnored, onChanged };
        const work = await replayWork(order, { loaded, opener, store, places, ...on });
        if (flags.dryRun === true) return count(work, flags, io).finally(() => ignored.end());
        // A stdout sink without a reader would be retried forever.
        if (Object.values(loaded.config.sinks).some((sink) => sink.description.writesStdout === true)) {
          io.setExit(EXIT.partial);
          io.whenOutputIsLost('end');
        }
        render(await runReplay(work, flags, io).finally(() => ignored.end()), work, flags, io);
      });
    });
}

/** The finished replay that --resume means; null when there is something to resume. */
function finishedOf(order: ReplayOrder): Finished | null {
  if (order.finishedIn === null || Checkpoint.isIn(order.state)) return null;
  return finishedBefore(order.finishedIn, order);
}

function reportFinished({ id, finished_at }: Finished, flags: ReplayFlags, io: Io): void {
  if (flags.json === true)
    print(io, JSON.stringify({ ok: true, complete: true, replay_id: id, finished_at }));
  else note(io, `replay ${id} was finished at ${finished_at}: there is nothing to resume`);
}

async function count(work: ReplayWork, flags: ReplayFlags, io: Io): Promise<void> {
  const progress = new ReplayProgress(io, 0);
  const { pseudonymiser } = work.order;
  const how = { ...work, pseudonymiser, onProblem: progress.problem.bind(progress) };
  const result = await dryRun(work.list(), how, io.signal)
    .catch((error: unknown) => {
      throw io.signal.aborted ? new MillraceError('interrupted', 'the count is not complete') : error;
    })
    .finally(() => progress.end());
  const { counts } = result;
  if (flags.json === true)
    print(io, JSON.stringify({ ok: counts.problems === 0, dry_run: true, ...counts, routes: result.routes }));
  else renderDryRun(result, io);
  io.setExit(counts.problems > 0 ? EXIT.partial : EXIT.done);
}

function renderDryRun({ counts, routes }: DryRun, io: Io): void {
  const types = Object.entries(counts.types).toSorted(([one], [other]) => (one < other ? -1 : 1));
  const rows = types.map(([type, events]) => [type, String(events), routes[type]?.join(' ') || '(nowhere)']);
  if (rows.length > 0) printTable(io, ['TYPE', 'EVENTS', 'TO'], rows);
  for (const [target, events] of Object.entries(counts.targets)) print(io, `to ${target}: ${events}`);
  print(io, `read ${counts.read}, selected ${counts.selected}${asides(counts)}; nothing was sent`);
}

function render(summary: ReplaySummary, { loaded }: ReplayWork, flags: ReplayFlags, io: Io): void {
  const { complete, replay_id: id, state, read, selected, targets } = summary;
  const { sinks } = loaded.config;
  // On stderr when events went to stdout.
  const writesStdout = Object.keys(targets).some(
    (target) => sinks[parseTarget(target).sink]?.description.writesStdout === true,
  );
  const write = writesStdout ? note : print;
  if (flags.json === true) write(io, JSON.stringify(summary));
  else {
    write(io, `replay     ${id}`);
    write(io, `read       ${read}, selected ${selected}${asides(summary)}`);
    for (const [target, events] of Object.entries(targets)) write(io, `delivered  ${events} to ${target}`);
  }
  if (!complete) note(io, `interrupted; run the same command with --resume to continue (${state})`);
  else if (summary.refused > 0) note(io, `refused events are named in ${state}/refused.ndjson`);
  io.setExit(summary.ok ? EXIT.done : EXIT.partial);
}

function asides({ nowhere, erased, problems, refused }: DryRun['counts']): string {
  const parts = [
    nowhere > 0 ? `, ${nowhere} without a route` : '',
    erased > 0 ? `, ${erased} erased` : '',
    refused > 0 ? `, ${refused} refused` : '',
    problems > 0 ? `, ${problems} that could not be read` : '',
  ];
  return parts.join('');
}
