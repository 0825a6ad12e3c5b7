import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { readManifest } from '../archive/manifest.ts';
import { listArchive, type Places } from '../archive/places.ts';
import { readArchive } from '../archive/read.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
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
import { commandOf, type OptionsOf, readAs, repeated } from './options.ts';
import { storageOf, withPlaces } from './places.ts';
import { StatusLine } from './status-line.ts';

export const PROVE_HELP = `
Examples:
  millrace archive prove ./data/archive --config config/millrace.yaml
  millrace archive prove ./data/archive --log http://127.0.0.1:8080/receipts --key acme.example/events+1a2b3c4d+AbCd…
  millrace archive prove s3://acme/archive --config config/millrace.yaml --receipts receipts.ndjson

Every event that the signed log of receipts has must be in the archive, or on the receipt of an erasure. The archive must be of a sink that
gets all events; name several for a sink each. What is missing there is looked for in quarantine, among the dead letters of the sink
that writes the archive, and among what a person dropped from them (erasure.path/dropped.jsonl, signed as the manifest is). The sink is the one whose
archive the config has at this path, whatever its name was when a dead letter was dropped: for a copy elsewhere dead letters say nothing. An event is
unclear when a dead letter was dropped of a sink of this name that had another archive then, or none, when not all sinks of the archives that were
named have it as a dead letter, or when a drop was begun and is not known to have been done. What still waits in the journal is not there yet: \`millrace flush\` first. --receipts takes
what a sender kept, as \`millrace receipt verify\` does: each must be the entry that it names. Whoever has the disk can make a new log, and
cannot make one that receipts which were completed before agree with, nor one that the lines of the manifest do, which say how the log ended
when they were written. Whoever has the
key that signs receipts of erasures (proof.key, or manifest.key in erasure.path) can make one for an event that was removed: keep the key on another
disk. With --receipts an event of the sender that only an erasure accounts for is named, until --erasure says that this one was asked for.
An entry stands for an event's id, its time and its body: what else a line of the
archive says is checked by \`archive verify\`.

Exit codes: 0 every event is accounted for, or the log is empty, 1 not readable, or there is no log, 2 usage or config, 3 an erasure is not done, or is to be confirmed, or events are unclear, 4 events are missing, named by their entries.`;

const OPTIONS = {
  ...KEY_OPTIONS,
  ...LOG_OPTIONS,
  '--config <file>': 'the config, for its log, its keys and its erasures',
  '--receipts <file>': 'what a sender kept',
  '--erasure <id>': repeated(
    'with --receipts: an erasure that was asked for, by the id that `millrace erase` printed; may be repeated',
  ),
  '--json':
    'print one JSON object: {size, events, archived, erased, closed, quarantined, dead, dropped, unclear, missing, open, unconfirmed, false_receipts, false_heads}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function proveCommand(io: Io): Command {
  return commandOf('prove', OPTIONS, PROVE_HELP)
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
  const kept = options.receipts === undefined ? [] : keptIn(options.receipts, verifier);
  const said = await withPlaces(storageOf(options, io, paths), (places) =>
    headsIn(paths, places, verifier.name),
  );
  const erasures = config === null ? [] : [...erasedEntries(config.erasure.path, readProof(config).trusted)];
  for (const { file, head } of erasures) if (head?.origin === verifier.name) said.push({ file, head });
  const heads = [...kept.map(({ head }) => head), ...said.map(({ head }) => head)];
  const entries = await LogEntries.read(log, verifier, new Set(heads.flatMap((head) => head?.size ?? [])));
  const found = await findArchived(paths, entries, options, io);
  const asked = { kept, erasures: new Set(options.erasure ?? []) };
  const before = config === null ? NOTHING_ERASED : findErased(config, entries, asked);
  const isAllFound = (): boolean => entries.missing().next().done === true;
  const aside =
    loaded === null || isAllFound()
      ? NOTHING_ASIDE
      : await findAside(loaded, await writersOf(paths, options, io), entries, io);
  // What a retry brought into the archive meanwhile, or an erasure took out of it.
  const again = isAllFound()
    ? { archived: 0, closed: found.closed }
    : await findArchived(paths, entries, options, io);
  const after = config === null ? NOTHING_ERASED : findErased(config, entries, asked);
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
      ...kept.flatMap((one) => falseReceipt(one, entries) ?? []),
      ...erasures.flatMap((one) => falseErasure(one, entries, verifier.name)),
    ],
    false_heads: said
      .filter(({ head: { size, root } }) => size > 0 && entries.roots.get(size)?.toString('base64') !== root)
      .map(({ file, head: { size } }) => ({ file, size })),
  };
}

/** @returns how many events are in the archives, and how many records nobody can open */
async function findArchived(
  paths: readonly string[],
  entries: LogEntries,
  options: Options,
  io: Io,
): Promise<Pick<ProveReport, 'archived' | 'closed'>> {
  const counts = { archived: 0, closed: 0 };
  const status = new StatusLine(io);
  const opener = await openerOf(options, io, 'nothing');
  await withPlaces(storageOf(options, io, paths), async (places) => {
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

type Erased = Pick<ProveReport, 'erased' | 'open' | 'unconfirmed'>;

const NOTHING_ERASED: Erased = { erased: 0, open: [], unconfirmed: [] };

/** What a sender kept, and the erasures that are known to have been asked for. */
interface Asked {
  readonly kept: readonly Kept[];
  readonly erasures: ReadonlySet<string>;
}

/** What erasures have taken, and nothing was found for before. Who has the disk may have the key that signs their receipts. */
function findErased(config: ProofPlace, entries: LogEntries, { kept, erasures }: Asked): Erased {
  const { path } = config.erasure;
  // Before the receipts: one is written before its request is removed.
  const begun = [...openEntries(path)];
  const ids = new Map(kept.map(({ id, receipt }) => [receipt?.entry.toString('base64'), id]));
  const unconfirmed: ProveReport['unconfirmed'][number][] = [];
  const accounted = (taken: readonly Buffer[], erasure: string): number => {
    const found = taken.filter((entry) => entries.account(entry));
    for (const entry of erasures.has(erasure) ? [] : found) {
      const id = ids.get(entry.toString('base64'));
      if (id !== undefined) unconfirmed.push({ id, erasure });
    }
    return found.length;
  };
  let erased = 0;
  for (const one of erasedEntries(path, readProof(config).trusted))
    erased += accounted(one.entries, basename(one.file, '.json'));
  const open = begun
    .map(({ id, entries: taken }) => ({ request: id, entries: accounted(taken, id) }))
    .filter((one) => one.entries > 0);
  return { erased, open, unconfirmed };
}

/** How the log ended at some time, and what says so. */
interface SaidHead {
  readonly file: string;
  readonly head: LogHead;
}

/** What the manifests say of the log: how it ended when a line was written. Each head once, with a file that it stands beside. */
async function headsIn(paths: readonly string[], places: Places, origin: string): Promise<SaidHead[]> {
  const heads = new Map<string, SaidHead>();
  for (const path of paths) {
    const onEntry = ({ file, log }: ManifestLine): void => {
      if (log?.origin === origin) heads.set(`${log.size} ${log.root}`, { file, head: log });
    };
    await readManifest(await listArchive(path, places), { onEntry });
  }
  return [...heads.values()];
}

/** What a sender kept: a receipt, and what the checkpoint of its proof says; or why it is none. */
interface Kept {
  readonly id: string;
  readonly receipt: KeptReceipt | null;
  readonly head: TreeHead | null;
  readonly problem: string | null;
}

function keptIn(file: string, verifier: NoteVerifier): Kept[] {
  const lines = readAs('--receipts', file, (path) => readFileSync(path, 'utf8')).split('\n');
  return lines.flatMap((line, at): Kept[] => {
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

/** A receipt that the log does not have, or of another log than this: one that was made again. */
function falseReceipt(
  { id, receipt, head, problem }: Kept,
  entries: LogEntries,
): { readonly id: string; readonly detail: string } | null {
  if (receipt === null || problem !== null) return { id, detail: problem ?? '' };
  const { index, entry } = receipt;
  const { size } = entries.head;
  if (index >= size) return { id, detail: `the log has no entry ${index}` };
  if (!entries.isAt(index, entry)) return { id, detail: `is not entry ${index} of the log` };
  if (head === null || entries.roots.get(head.size)?.equals(head.root) === true) return null;
  return { id, detail: `is of a log that had ${head.size} entries, and other ones: this one was made again` };
}

/** An erasure whose receipt names entries that the log, as the receipt says it was, did not have yet. */
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
