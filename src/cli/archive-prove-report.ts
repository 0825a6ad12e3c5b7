import { visible } from '../lib/visible.ts';
import { print, type Io } from './io.ts';

/** Entries that are named; `--json` has all of them. */
const NAMED = 100;

/** An erasure that is not done, and what it has taken out so far. */
export interface OpenErasure {
  readonly request: string;
  readonly entries: number;
}

/** How much of the log witnesses have signed. */
export interface WitnessedReport {
  readonly entries: number;
  /** Who and when, or why not. */
  readonly detail: readonly string[];
  /** What they have signed is another log, or more than there is of this one. */
  readonly other: boolean;
}

/** What `archive prove` has found. */
export interface ProveReport {
  readonly size: number;
  readonly events: number;
  readonly archived: number;
  readonly erased: number;
  readonly closed: number;
  readonly quarantined: number;
  readonly dead: number;
  readonly dropped: number;
  /** Entries of events of which it cannot be said whether an archive should have them. */
  readonly unclear: readonly number[];
  readonly missing: readonly number[];
  readonly open: readonly OpenErasure[];
  readonly false_receipts: readonly { readonly id: string; readonly detail: string }[];
  /** Of the log, as lines of a manifest have it. */
  readonly false_heads: readonly { readonly file: string; readonly size: number }[];
  readonly witnessed: WitnessedReport | null;
}

export function showProof(io: Io, report: ProveReport): void {
  const {
    size,
    events,
    archived,
    erased,
    closed,
    quarantined,
    dead,
    dropped,
    unclear,
    missing,
    open,
    witnessed,
  } = report;
  const { false_receipts: wrong, false_heads: heads } = report;
  print(io, `log        ${size} entries, ${events} of them events`);
  print(io, `found      ${archived} in the archive, ${erased} on receipts of erasures`);
  if (quarantined + dead > 0) print(io, `waiting    ${quarantined} in quarantine, ${dead} dead letters`);
  if (dropped > 0)
    print(io, `dropped    ${dropped} by a person, from quarantine or dead letters: \`millrace audit list\``);
  if (closed > 0)
    print(io, `closed     ${closed} sealed records without a key: what they are of cannot be told`);
  for (const { id, detail } of wrong) print(io, visible(`receipt    ${id}: ${detail}`));
  for (const index of missing.slice(0, NAMED)) print(io, `missing    entry ${index}`);
  for (const index of unclear.slice(0, NAMED))
    print(
      io,
      `unclear    entry ${index}: not all sinks have it as a dead letter, or it is not known whether it was dropped`,
    );
  if (unclear.length > NAMED) print(io, `unclear    and ${unclear.length - NAMED} more`);
  for (const { request, entries: taken } of open)
    print(
      io,
      `open       erasure ${request} has taken out ${taken} events and is not done: \`millrace erase --run\` says why`,
    );
  if (missing.length > NAMED) print(io, `missing    and ${missing.length - NAMED} more`);
  for (const { file, size: had } of heads)
    print(
      io,
      visible(`log        had ${had} entries when ${file} was listed, and other ones: it was made again`),
    );
  if (witnessed !== null) {
    const { entries, detail, other } = witnessed;
    const what = other ? 'another log than this one' : `${entries} of ${size} entries`;
    print(io, visible(`witnessed  ${[what, ...detail].join(', ')}`));
  }
  const isOther = witnessed?.other === true;
  if (missing.length + wrong.length + heads.length === 0)
    print(
      io,
      isOther
        ? 'the log is not the one that the witness has signed'
        : open.length > 0
          ? 'an erasure is not done'
          : unclear.length > 0
            ? `${unclear.length} events are unclear`
            : 'every event is accounted for',
    );
  else print(io, `${missing.length} events are missing, ${wrong.length} receipts are not as the log has it`);
}
