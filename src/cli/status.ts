import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { EXIT } from '../core/errors.ts';
import type { ReceiptsStatus, ReceivingStatus, SinkStatus, SystemStatus } from '../core/operations.ts';
import type { SinkTrouble } from '../core/sink.ts';
import { aboutBytes, aboutDuration, formatDuration, parseDuration } from '../lib/units.ts';
import type { Config, LoadedConfig } from '../config/config.ts';
import { ownerFolder, readOwner } from '../journal/owner.ts';
import { adviceOn } from '../observe/metrics/refusal-log.ts';
import { AdminClient } from './admin-client.ts';
import { note, print, printResult, type Io, printTable } from './io.ts';
import { commandOf, type OptionsOf, readBy, special } from './options.ts';
import { CONFIG, receiverConfigOf } from './config-options.ts';

const HELP = `
Examples:
  millrace status
  millrace status --json | jq '.journal.cursors[] | {sink, backlog}'

  millrace send --count 100 && millrace status --wait 2m > /dev/null
  millrace status --live || systemctl restart millrace

BACKLOG counts the events that wait for the sink; of more than 10,000 that it has not examined yet, it includes events for others.
BYTES is the size of the journal from the oldest of them on. Asks the running receiver, or reads the journal itself.

Exit codes: 0 done, and with --wait all accepted events are delivered or dead letters; 1 there is no journal, or its owner cannot be
asked, with --live it does not answer, and with --wait events still wait after that time, at a signal, or while no receiver runs;
2 usage or config.`;

/** Milliseconds between two looks of --wait. */
const EVERY_MS = 200;

const WAIT = readBy(parseDuration, 'wait until all is delivered, at most this long');
const OPTIONS = {
  ...CONFIG,
  '--wait [duration]': special<number | undefined>(WAIT.description, (option) =>
    WAIT.set(option).preset('60s'),
  ),
  '--live':
    'only ask whether a receiver answers /livez on admin.host and admin.port, such as for a health check',
  '--json': 'print one JSON document',
};
type Options = OptionsOf<typeof OPTIONS>;

export function statusCommand(io: Io): Command {
  return commandOf('status', OPTIONS, HELP)
    .description('connections and refusals, journal, backlog and age per sink, quarantine, dead letters')
    .action(async (options: Options) => {
      const loaded = receiverConfigOf(options, io);
      if (options.live === true) return reportLive(io, options, loaded);
      const { wait } = options;
      const end = performance.now() + (wait ?? 0);
      for (;;) {
        // Loaded late: --live needs no journal.
        const { withOperations } = await import('./operations.ts');
        const status = await withOperations(loaded, (operations) => operations.status());
        const left = wait === undefined ? [] : waiting(status);
        const isOver = status.pid === null || performance.now() >= end || io.signal.aborted;
        if (left.length > 0 && !isOver) {
          await pause(EVERY_MS, undefined, { signal: io.signal }).catch(() => undefined);
          continue;
        }
        if (options.json === true) print(io, JSON.stringify(status));
        else report(io, status, loaded.config);
        if (left.length === 0) return;
        const why = status.pid === null ? 'no receiver runs' : `after ${formatDuration(wait ?? 0)}`;
        note(io, `events still wait for ${left.join(', ')}: ${why}`);
        return io.setExit(EXIT.failed);
      }
    });
}

/** Whether a receiver with this config answers; exit code 1 when none does. */
async function reportLive(io: Io, options: Options, { config, isSalvaged }: LoadedConfig): Promise<void> {
  const client = isSalvaged ? AdminClient.running(config) : AdminClient.atAddress(config);
  const { url } = client;
  const live = await client.isListening();
  printResult(io, options, { live, url }, `${url} ${live ? 'answers' : 'does not answer'}`);
  if (!live) io.setExit(EXIT.failed);
}

function report(io: Io, status: SystemStatus, config: Config): void {
  const { pid, journal, sinks, receiving, earlier } = status;
  const rows = journal.cursors.map((cursor) => {
    const sink = sinks.find((candidate) => candidate.sink === cursor.sink);
    return [
      cursor.sink,
      stateOf(sink) ?? (pid === null ? '-' : 'not configured'),
      String(cursor.backlog),
      aboutBytes(cursor.backlogBytes),
      cursor.backlogAge === 0 ? '-' : aboutDuration(cursor.backlogAge),
      sink === undefined ? '-' : String(sink.held),
      sink?.lastError ?? '',
    ];
  });
  const lines = [
    `receiver     ${pid === null ? 'not running' : `running, process ${pid}`}`,
    ...(pid === null ? [] : renderConfig(config)),
    ...(receiving === null ? [] : renderReceiving(receiving)),
    `journal      ${journal.path}: ${journal.events} events, ${aboutBytes(journal.bytes)} of ${aboutBytes(journal.maxBytes)}`,
    `quarantine   ${setAside(journal.quarantined, 'quarantine')}`,
    `dead letters ${setAside(journal.deadLetters, 'dead-letters')}`,
    ...(journal.damaged === 0 ? [] : [`damaged      ${journal.damaged} records in the journal`]),
    '',
  ];
  print(io, lines.join('\n'));
  printTable(io, ['SINK', 'STATE', 'BACKLOG', 'BYTES', 'OLDEST', 'HELD', 'LAST ERROR'], rows);
  const more = [
    ...(journal.troubles ?? []).map((trouble) => renderTrouble('journal', trouble)),
    ...sinks.flatMap(({ sink, troubles }) => troubles.map((trouble) => renderTrouble(sink, trouble))),
    ...earlier.map((trouble) => renderTrouble('earlier archive', trouble)),
    ...sinks.flatMap(renderSkipped),
  ];
  if (more.length > 0) print(io, more.join('\n'));
}

/** The config in force. */
function renderConfig(config: Config): string[] {
  const inForce = readOwner(ownerFolder(config))?.config ?? null;
  if (inForce === null) return [];
  const { file, since, refused } = inForce;
  const later = refused === null ? '' : `; A LATER VERSION WAS REFUSED: ${refused.split('\n')[0]}`;
  return [`config       ${file}, read at ${since}${later}`];
}

/** Sinks with waiting or pending events. */
function waiting({ journal, sinks }: SystemStatus): string[] {
  const behind = journal.cursors.filter(({ backlog }) => backlog > 0).map(({ sink }) => sink);
  const busy = sinks.filter(({ pending }) => pending > 0).map(({ sink }) => sink);
  return [...new Set([...behind, ...busy])];
}

/** @param command that shows them */
function setAside(count: number, command: string): string {
  return count === 0 ? '0' : `${count}: millrace ${command} list`;
}

function renderReceiving(receiving: ReceivingStatus): string[] {
  const { connections, refused, refusedSince, refusedLast, signing, receipts } = receiving;
  const { open, max, evicted, dropped } = connections;
  const span =
    refusedSince === null ? 'in the last hour' : `since the start at ${new Date(refusedSince).toISOString()}`;
  const reasons = Object.entries(refused).map(([code, times]) => `${times} ${code}`);
  const more = reasons.length === 0 ? [] : [...renderLast(refusedLast), ...adviceOn(refused)];
  return [
    `connections  ${open} of ${max}; ${evicted} idle ones closed to make room, ${dropped} rejected`,
    `refused      ${span}: ${reasons.length === 0 ? 'none' : reasons.join(', ')}`,
    ...more.map((line) => `             ${line}`),
    ...renderSecrets(signing),
    ...(receipts === null ? [] : [renderReceipts(receipts)]),
  ];
}

function renderLast(at: number | null): string[] {
  return at === null ? [] : [`the last ${aboutDuration(Math.max(0, Date.now() - at))} ago`];
}

function renderReceipts({ origin, entries, waiting: unsigned, behindSince }: ReceiptsStatus): string {
  const state =
    behindSince === null
      ? ''
      : `; CANNOT BE WRITTEN since ${new Date(behindSince).toISOString()}: no receipts are given`;
  return `receipts     ${origin}: ${entries} entries signed, ${unsigned} waiting${state}`;
}

/** With several secrets: how often each was used, to see which can be retired. */
function renderSecrets({ since, secrets }: ReceivingStatus['signing']): string[] {
  if (secrets.length < 2) return [];
  const uses = secrets.map(({ matches, lastUsed }, index) =>
    lastUsed === null
      ? `[${index}] unused`
      : `[${index}] ${matches} times, last ${new Date(lastUsed).toISOString()}`,
  );
  return [`secrets      since ${new Date(since).toISOString()}: ${uses.join(', ')}`];
}

function stateOf(sink: SinkStatus | undefined): string | undefined {
  return sink !== undefined && sink.troubles.length > 0 ? `${sink.mode}, in trouble` : sink?.mode;
}

/** Below the table, on lines of its own, so that commands in the detail can be copied. */
function renderTrouble(sink: string, { code, detail, since }: SinkTrouble): string {
  return `\n${sink}: ${code} since ${new Date(since).toISOString()}\n  ${detail}`;
}

function renderSkipped({ sink, skipped }: SinkStatus): string[] {
  const counts = Object.entries(skipped).map(([what, times]) => `${times} ${what}`);
  return counts.length === 0 ? [] : [`\n${sink}: confirmed without an action: ${counts.join(', ')}`];
}
