import { basename } from 'node:path';
import type { Command } from 'commander';
import { readManifest } from '../archive/manifest.ts';
import { listArchive, type Places } from '../archive/places.ts';
import { readArchive } from '../archive/read.ts';
import { messageOf } from '../core/errors.ts';
import { entryOfRecord, type LogHead } from '../core/receipt.ts';
import { erasedEntries, openEntries, type ErasedEntries } from '../privacy/erase/receipt.ts';
import { readProof, type ProofPlace } from '../privacy/proof/open.ts';
import { parseKept, type KeptReceipt } from '../privacy/receipts/kept.ts';
import { openLog } from '../privacy/receipts/log-source.ts';
import type { NoteVerifier, TreeHead } from '../privacy/receipts/note.ts';
import { receiptsPlace } from '../privacy/receipts/place.ts';
import { LogEntries } from '../privacy/receipts/prove.ts';
import { parseProof, verifyProof } from '../privacy/receipts/proof-text.ts';
import { findAside, NOTHING_ASIDE, writersOf } from './archive-prove-aside.ts';
import { showProof, verdictOf, type ProveReport } from './archive-prove-report.ts';
import { configOf } from './config-options.ts';
import { print, usageError, type Io } from './io.ts';
import { KEY_OPTIONS, openerOf } from './key-options.ts';
import { LOG_OPTIONS } from './log-options.ts';
import { commandOf, type OptionsOf, readAs, repeated, textOf } from './options.ts';
import { withArchives } from './places.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace archive prove ./data/archive --config config/millrace.yaml
  millrace archive prove ./data/archive --log http://127.0.0.1:8080/receipts --key acme.example/events+1a2b3c4d+AbCd…
  millrace archive prove s3://acme/archive --config config/millrace.yaml --receipts receipts.ndjson

Checks that every event in the signed log of receipts is in the archive, or on the receipt of an erasure. The archive must be
of a sink that gets all events; otherwise name the archives of several sinks. A missing event is looked for in quarantine, among
the dead letters of the sink whose archive is at this path in the config, and among what a person dropped from them
(erasure.path/dropped.jsonl). Events that still wait in the journal are missing: run \`millrace flush\` first.

An event is unclear when a dead letter of this sink was dropped while its archive was elsewhere, when only some sinks of the
named archives have it as a dead letter, or when a drop may not have been completed.

--receipts takes what a sender kept, as \`millrace receipt verify\` does; each receipt must be in the log. Someone with access to
the disk can replace the log, but not so that it agrees with completed receipts or with the manifest, which notes the log's
head in each line. Someone with the key that signs receipts of erasures (proof.key, or manifest.key in erasure.path) can hide a
removed event: keep the key on another disk. With --receipts, an event of the sender that was erased is named until --erasure
confirms the erasure. An entry covers id, time and body of an event; \`archive verify\` checks the rest of a record.

Exit codes: 0 every event is accounted for, or the log is empty, 1 not readable, or there is no log, 2 usage or config,
3 an erasure is not done or not confirmed, or events are unclear, 4 events are missing; their entries are named.`;

const OPTIONS = {
  ...KEY_OPTIONS,
  ...LOG_OPTIONS,
  '--config <file>': 'the config, for its log, keys and erasures',
  '--receipts <file>': 'receipts that a sender kept',
  '--erasure <id>': repeated(
    'with --receipts: an erasure that was asked for; `millrace erase` prints the id',
  ),
  '--json':
    'print one JSON object: {size, events, archived, erased, closed, quarantined, dead, dropped, unclear, missing, open, unconfirmed, false_receipts, false_heads}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function proveCommand(io: Io): Command {
  return commandOf('prove', OPTIONS, HELP)
    .description('prove that every event with a receipt is in the archive, or was erased')
    .argument('<path...>', 'folders of archives, or their URLs')
    .action(async (paths: readonly string[], options: Options) => {
      const report = await prove(paths, options, io);
      if (options.json === true) print(io, JSON.stringify(report));
      else showProof(io, report);
      io.setExit(verdictOf(report).exit);
    });
}

async function prove(paths: readonly string[], options: Options, io: Io): Promise<ProveReport> {
  const loaded = options.config === undefined ? null : configOf(options, io);
  const config = loaded?.config ?? null;
  const own = config === null ? null : await receiptsPlace(config, false);
  const place = options.log ?? own?.folder;
  if (place === undefined) throw usageError('name the log: --log, or --config with receipts.path');
  const log = openLog(place);
  const verifier = options.key ?? own?.verifier ?? null;
  if (verifier === null) throw usageError('name the key of the log: --key, or --config with receipts.path');
  const receipts = options.receipts === undefined ? [] : senderReceipts(options.receipts, verifier);
  const noted = await withArchives(paths, options, io, (places) => headsIn(paths, places, verifier.name));
  const erasures = config === null ? [] : [...erasedEntries(config.erasure.path, readProof(config).trusted)];
  for (const { file, head } of erasures) if (head?.origin === verifier.name) noted.push({ file, head });
  const heads = [...receipts, ...noted].flatMap(({ head }) => head?.size ?? []);
  const entries = await LogEntries.read(log, verifier, new Set(heads));
  const found = await findArchived(paths, entries, options, io);
  const confirmed = new Set(options.erasure);
  const erased = (): ErasedCounts =>
    config === null ? NOTHING_ERASED : findErased(config, entries, receipts, confirmed);
  const before = erased();
  const isAllFound = (): boolean => entries.missing().next().done === true;
  const aside =
    loaded === null || isAllFound()
      ? NOTHING_ASIDE
      : await findAside(loaded, await writersOf(paths, options, io), entries, io);
  // During the search a retry can add events to the archive, and an erasure can remove some.
  const again = isAllFound()
    ? { archived: 0, closed: found.closed }
    : await findArchived(paths, entries, options, io);
  const after = erased();
  return {
    size: entries.head.size,
    events: entries.events,
    archived: found.archived + again.archived,
    erased: before.erased + after.erased,
    closed: again.closed,
    ...aside,
    missing: [...entries.missing()],
    open: [...before.open, ...after.open],
    unconfirmed: [...before.unconfirmed, ...after.unconfirmed],
    false_receipts: [
      ...receipts.flatMap((one) => falseReceipt(one, entries) ?? []),
      ...erasures.flatMap((one) => falseErasure(one, entries, verifier.name)),
    ],
    false_heads: noted
      .filter(({ head: { size, root } }) => size > 0 && entries.roots.get(size)?.toString('base64') !== root)
      .map(({ file, head: { size } }) => ({ file, size })),
  };
}

/** Counts events in the archives, and sealed records without a key. */
async function findArchived(
  paths: readonly string[],
  entries: LogEntries,
  options: Options,
  io: Io,
): Promise<Pick<ProveReport, 'archived' | 'closed'>> {
  const counts = { archived: 0, closed: 0 };
  const status = new StatusLine(io);
  const opener = await openerOf(options, io, 'nothing');
  await withArchives(paths, options, io, async (places) => {
    for (const path of paths) {
      for await (const item of readArchive(path, { places, opener, parts: true, signal: io.signal })) {
        const found = counts.archived;
        status.show(() => `${found} events found${status.pace(found, null)}: ${item.file}`);
        if (item.kind === 'problem') {
          if (item.sealed !== undefined) counts.closed += 1;
          continue;
        }
        const entry = entryOfRecord(item.record, item.body);
        if (entry !== null && entries.account(entry)) counts.archived += 1;
      }
    }
  });
  return counts;
}

type ErasedCounts = Pick<ProveReport, 'erased' | 'open' | 'unconfirmed'>;

const NOTHING_ERASED: ErasedCounts = { erased: 0, open: [], unconfirmed: [] };

/** Accounts for events by the receipts of erasures. @param confirmed erasures that are known to have been asked for */
function findErased(
  config: ProofPlace,
  entries: LogEntries,
  receipts: readonly SenderReceipt[],
  confirmed: ReadonlySet<string>,
): ErasedCounts {
  const { path } = config.erasure;
  // Before the receipts: an erasure writes its receipt before it removes its request.
  const begun = [...openEntries(path)];
  const ids = new Map(receipts.map(({ id, receipt }) => [receipt?.entry.toString('base64'), id]));
  const unconfirmed: ProveReport['unconfirmed'][number][] = [];
  const accounted = (removed: readonly Buffer[], erasure: string): number => {
    const found = removed.filter((entry) => entries.account(entry));
    for (const entry of confirmed.has(erasure) ? [] : found) {
      const id = ids.get(entry.toString('base64'));
      if (id !== undefined) unconfirmed.push({ id, erasure });
    }
    return found.length;
  };
  let erased = 0;
  for (const one of erasedEntries(path, readProof(config).trusted))
    erased += accounted(one.entries, basename(one.file, '.json'));
  const open = begun
    .map(({ id, entries: removed }) => ({ request: id, entries: accounted(removed, id) }))
    .filter((one) => one.entries > 0);
  return { erased, open, unconfirmed };
}

/** A head of the log, and the file whose manifest line or receipt notes it. */
interface NotedLogHead {
  readonly file: string;
  readonly head: LogHead;
}

/** Heads of the log in the manifests, each once. */
async function headsIn(paths: readonly string[], places: Places, origin: string): Promise<NotedLogHead[]> {
  const heads = new Map<string, NotedLogHead>();
  for (const path of paths)
    await readManifest(await listArchive(path, places), {
      onEntry: ({ file, log }) => {
        if (log?.origin === origin) heads.set(`${log.size} ${log.root}`, { file, head: log });
      },
    });
  return [...heads.values()];
}

/** A line that a sender kept: its receipt, and the head in its proof; or why it cannot be used. */
interface SenderReceipt {
  readonly id: string;
  readonly receipt: KeptReceipt | null;
  readonly head: TreeHead | null;
  readonly problem: string | null;
}

function senderReceipts(file: string, verifier: NoteVerifier): SenderReceipt[] {
  const lines = readAs('--receipts', file, textOf).split('\n');
  return lines.flatMap((line, at): SenderReceipt[] => {
    if (line.trim() === '') return [];
    try {
      const receipt = parseKept(line);
      const none = { id: receipt.id, receipt, head: null, problem: null };
      if (receipt.proof === null) return [none];
      const verdict = verifyProof(receipt.entry, parseProof(receipt.proof), verifier);
      return [verdict.ok ? { ...none, head: verdict.head } : { ...none, problem: verdict.reason }];
    } catch (error) {
      return [{ id: `line ${at + 1}`, receipt: null, head: null, problem: messageOf(error) }];
    }
  });
}

/** Null when the log has the receipt, and its proof is of this log. */
function falseReceipt(
  { id, receipt, head, problem }: SenderReceipt,
  entries: LogEntries,
): { readonly id: string; readonly detail: string } | null {
  if (receipt === null || problem !== null) return { id, detail: problem ?? '' };
  const { index, entry } = receipt;
  const { size } = entries.head;
  if (index >= size) return { id, detail: `the log has no entry ${index}` };
  if (!entries.isAt(index, entry)) return { id, detail: `is not entry ${index} of the log` };
  if (head === null || entries.roots.get(head.size)?.equals(head.root) === true) return null;
  return {
    id,
    detail: `the log was made again: it had ${head.size} other entries at the time of the receipt`,
  };
}

/** An erasure's receipt is false when it names an entry later than the log's head at its time. */
function falseErasure(
  { file, head, entries: erased }: ErasedEntries,
  entries: LogEntries,
  origin: string,
): { readonly id: string; readonly detail: string }[] {
  if (head?.origin !== origin) return [];
  const late = erased
    .map((entry) => entries.placeOf(entry))
    .find((place) => place !== null && place >= head.size);
  if (late === undefined) return [];
  return [{ id: file, detail: `names entry ${late} of a log that had ${head.size} entries` }];
}
