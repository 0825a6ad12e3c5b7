import type { RecordOpener } from '../../core/sealed-record.ts';
import type { FilesCount } from './count-files.ts';
import type { SinkIds } from './id-counter.ts';
import type { JournalSide } from './journal-side.ts';
import type { Difference, SinkAccount } from './report.ts';

/** An archive whose records are counted. */
export interface CountedArchive {
  readonly path: string;
  readonly opener?: RecordOpener | undefined;
}

export interface CountedSink {
  readonly name: string;
  readonly type: string;
  /** Null for a sink without files. */
  readonly archive: CountedArchive | null;
}

/** Adds a difference, unless `count` is 0. @param named the first ids */
export type Differ = (
  code: Difference['code'],
  sink: string | null,
  count: number,
  detail: string,
  named?: readonly string[],
) => void;

/** A number of events that are explained one reason after another; `left` are not explained. */
class Unexplained {
  left: number;

  constructor(count: number) {
    this.left = count;
  }

  take(most: number): number {
    const taken = Math.min(this.left, Math.max(0, most));
    this.left -= taken;
    return taken;
  }
}

/** Accounts for the events of one sink. */
export function accountOf(
  { name, type, archive }: CountedSink,
  side: JournalSide,
  files: FilesCount | null,
  takesAll: boolean,
  ids: SinkIds,
  differ: Differ,
): SinkAccount {
  const past = new Unexplained(side.past);
  const unsure = new Unexplained(ids.settled);
  const { destroyed = 0, closed = 0 } = files ?? {};
  let delivered = ids.found + past.take(ids.onlyFound);
  const dead = ids.dead + past.take(ids.deadAlone);
  const dropped = side.dropped + ids.dropped + past.take(ids.droppedAlone);
  const alone = side.erasedAlone.filter((sink) => sink === name).length;
  const erased = side.refusedErased + side.erased + past.take(files?.erased ?? 0) + past.take(alone);
  // Events that the journal has erased explain as many records of destroyed keys.
  delivered += unsure.take(files === null ? ids.settled : destroyed - side.erased);
  if (files !== null) delivered += past.take(destroyed - (ids.settled - unsure.left));
  const named = unsure.left === ids.settled ? ids.missing : [];
  const unread = unsure.take(closed);
  const unreadPast = takesAll ? past.take(closed - unread) : 0;
  differ(
    'unreadable',
    name,
    unread + unreadPast,
    `not in the records that open: ${closed} in the files of ${archive?.path ?? ''} are sealed with keys that are not in the key store (restore its newest copy, or name it with --keys)`,
    unsure.left === 0 ? named : [],
  );
  // Some can be erased events, or past retention where not every route names the sink.
  const erasedToo = Math.max(0, side.erased - destroyed);
  const unknown = closed - unread - unreadPast - erasedToo - (takesAll ? 0 : past.left);
  const keyless = `in the files of ${archive?.path ?? ''} and not among the events that this journal counted: sealed with keys that are not in the key store (restore its newest copy, or name it with --keys), or those of another receiver that writes there`;
  differ('unreadable', name, unknown, keyless);
  const lost = files !== null && takesAll ? past.take(past.left) : 0;
  differ(
    'missing',
    name,
    unsure.left,
    archive === null
      ? 'confirmed by the journal, but not in the files'
      : `confirmed by the journal, but not in the files of ${archive.path}; if the path was another one when they came, look there`,
    unread === 0 ? named : [],
  );
  const placed =
    ids.found + ids.dead + ids.dropped + ids.quarantined + ids.waiting + ids.settled + ids.elsewhere;
  const unplaced = Math.abs(side.retained - placed);
  differ('unplaced', name, unplaced, 'of the journal’s events have no position, or more than one');
  const gone =
    'accepted, past the journal’s retention, but not in the files of a sink that every route names';
  differ('lost', name, lost, gone);
  const strangers = files === null ? 0 : ids.onlyFound - side.past - side.replayed;
  const strange = `in the files of ${archive?.path ?? ''}, but never counted as received by this journal: they are those of another receiver that writes there (reconcile with its journal), or foreign`;
  differ('not_received', name, strangers, strange, ids.alone);
  return {
    sink: name,
    type,
    counted_from: files === null ? 'journal' : 'files',
    received: side.accepted + side.duplicates + side.quarantined + side.refusedErased,
    duplicates: side.duplicates,
    quarantined: side.inQuarantine + ids.quarantined,
    delivered,
    waiting: ids.waiting,
    dead,
    dropped,
    erased,
    elsewhere: ids.elsewhere,
    untold: past.left,
    missing: unsure.left + lost + unread + unreadPast,
    copies: ids.copies,
    sealed: destroyed + closed,
  };
}
