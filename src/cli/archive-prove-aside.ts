import { archiveKeyOf, placeKeyOf } from '../config/folders.ts';
import type { LoadedConfig } from '../config/config.ts';
import { MillraceError } from '../core/errors.ts';
import { pagesOf } from '../core/page.ts';
import type { DroppedNote } from '../core/proof.ts';
import { readProof } from '../privacy/proof/open.ts';
import type { LogEntries } from '../privacy/receipts/prove.ts';
import type { ProveReport } from './archive-prove-report.ts';
import { type ConfigFlags, resolvedConfigOf } from './config-options.ts';
import { note, type Io } from './io.ts';
import { withOperations } from './operations.ts';

type AsideCounts = Pick<ProveReport, 'quarantined' | 'dead' | 'dropped' | 'unclear'>;

export const NOTHING_ASIDE: AsideCounts = { quarantined: 0, dead: 0, dropped: 0, unclear: [] };

/** The sinks of the config that write an archive. */
interface Writers {
  /** Keys of the archive's place, by `archiveKeyOf`. */
  readonly keys: ReadonlySet<string>;
  /** Names, with former names. */
  readonly sinks: ReadonlySet<string>;
}

/** An entry of the log whose event waits in the journal, or was dropped from it. */
interface AsideEntry extends Omit<DroppedNote, 'state' | 'entries'> {
  readonly state: 'waits' | DroppedNote['state'];
  readonly entry: Buffer;
}

/** The writers of each archive; empty for an archive that the config does not have. */
export async function writersOf(paths: readonly string[], flags: ConfigFlags, io: Io): Promise<Writers[]> {
  const { config } = await resolvedConfigOf(flags, io);
  return paths.map((path) => {
    const place = placeKeyOf(path);
    const own = Object.entries(config.sinks).filter(
      ([, { description }]) => description.archive !== undefined && placeKeyOf(description.archive) === place,
    );
    if (own.length === 0)
      note(
        io,
        `${path} is no sink's archive in the config: dead letters do not explain what is missing there`,
      );
    const keys = own.flatMap(([, { description }]) => archiveKeyOf(description.archive) ?? []);
    return {
      keys: new Set(keys),
      sinks: new Set(own.flatMap(([name, { continues }]) => [name, continues ?? name])),
    };
  });
}

/**
 * Accounts for events that are in no archive because they wait in the journal or a person dropped them. A quarantined
 * event reached no sink, so it explains every archive. A dead letter explains only the archive of its own sink.
 */
export async function findAside(
  loaded: LoadedConfig,
  archives: readonly Writers[],
  entries: LogEntries,
  io: Io,
): Promise<AsideCounts> {
  const waiting = await waitingEntries(loaded, entries, io);
  const dropped = droppedEntries(loaded);
  const done = dropped.filter(({ state }) => state === 'done');
  const account = (some: readonly AsideEntry[]): number =>
    some.filter(({ entry }) => entries.account(entry)).length;
  const quarantined = account(waiting.filter(({ from }) => from === 'quarantine'));
  const droppedQuarantined = account(done.filter(({ from }) => from === 'quarantine'));

  const dead = [...waiting, ...done].filter(({ from }) => from === 'dead-letters');
  const deadByEntry = Map.groupBy(dead, ({ entry }) => entry.toString('base64'));
  const explained = dead.filter(({ entry }) => {
    const same = deadByEntry.get(entry.toString('base64')) ?? [];
    return archives.every((writers) => same.some((one) => isMissingIn(writers, one)));
  });
  const waitingDead = account(explained.filter(({ state }) => state === 'waits'));
  const droppedDead = account(explained);

  const unclear = [...dead, ...dropped].flatMap((one) => {
    const mayExplain =
      one.from === 'quarantine'
        ? one.state === 'begun'
        : archives.some((writers) => mayBeMissingIn(writers, one));
    if (!mayExplain) return [];
    const places = entries.openOf(one.entry);
    entries.account(one.entry);
    return places;
  });
  return { quarantined, dead: waitingDead, dropped: droppedQuarantined + droppedDead, unclear };
}

/** The archive's place decides where it is known; sinks can be renamed. */
function isMissingIn({ keys, sinks }: Writers, { sink, archive }: AsideEntry): boolean {
  if (archive !== undefined) return archive !== null && keys.has(archive);
  return sink !== null && sinks.has(sink);
}

/** Also true for a sink of the same name: its archive may have moved, or it may have another sink's name. */
function mayBeMissingIn(writers: Writers, one: AsideEntry): boolean {
  return isMissingIn(writers, one) || (one.sink !== null && writers.sinks.has(one.sink));
}

function droppedEntries({ config }: LoadedConfig): AsideEntry[] {
  return readProof(config)
    .dropped.notes()
    .flatMap(({ entries, ...about }) =>
      entries.map((entry) => ({ ...about, entry: Buffer.from(entry, 'base64') })),
    );
}

async function waitingEntries(loaded: LoadedConfig, entries: LogEntries, io: Io): Promise<AsideEntry[]> {
  const found: AsideEntry[] = [];
  try {
    await withOperations(loaded, async (operations) => {
      for (const from of ['quarantine', 'dead-letters'] as const)
        for await (const page of pagesOf((part) => operations.listEntries(from, part), {}))
          for (const { sink, entry: text } of page) {
            const entry = text === null ? null : Buffer.from(text, 'base64');
            if (entry !== null && entries.openOf(entry).length > 0)
              found.push({ from, state: 'waits', sink: sink ?? null, entry });
          }
    });
  } catch (error) {
    // The report still names the missing events.
    if (!(error instanceof MillraceError)) throw error;
    note(io, `${error.detail}: quarantine and dead letters were not searched`);
  }
  return found;
}
