import { createHash } from 'node:crypto';
import type { Event } from '../../core/event.ts';
import { getOrMakeAtMost } from '../../lib/get-or-make.ts';
import type { PartitionKey } from './config.ts';

/** Hive's name for an absent value, which readers turn back into null. */
const ABSENT = '__HIVE_DEFAULT_PARTITION__';
/** Encoded values are cut to this many characters: with the key they are then below the 255 bytes of a file name. */
const LONGEST = 120;
/** Encoded values remembered at most; the sender chooses them. */
const REMEMBERED = 10_000;
/** Names of devices on Windows, with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/;

/**
 * The name of a folder level for any text. It never leads out of its parent, is the same on case-insensitive file systems, and differs
 * for different (well-formed) texts. Percent-encoded are: bytes outside `a-z 0-9 . _ -`, a leading `.` or `_`, a trailing `.`, the
 * begin of a device name, and the dot of `.ndjson`, because `*.ndjson*` must not find the folder. A longer text is cut and ends in `~`
 * and a hash; no other name has a `~`. The empty text and null share Hive's name for an absent value.
 */
export function safeLevel(text: string | null): string {
  if (text === null || text === '') return ABSENT;
  const encoded = Buffer.from(text.slice(0, LONGEST + 1))
    .toString('latin1')
    .replaceAll(/[^a-z0-9._-]|^[._]|\.$|\.(?=ndjson)/g, percent)
    .replace(DEVICE, (name) => percent(name.charAt(0)) + name.slice(1));
  if (encoded.length <= LONGEST && text.length <= LONGEST) return encoded;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 32);
  return `${encoded.slice(0, LONGEST).replace(/%.?$/, '')}~${hash}`;
}

function percent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Names the folder of an event in the archive: `dt=2026-11-21/team=…`, below its destination if it has one. */
export class Partitioner {
  readonly #keys: readonly PartitionKey[];
  readonly #levels = new Map<string, string>();
  #hour = Number.NaN;
  #dateLevel = '';

  constructor(keys: readonly PartitionKey[]) {
    this.#keys = keys;
  }

  /** Relative to the archive, `/`-separated; may be empty. */
  folderOf(event: Event, destination: string | null): string {
    let folder = this.destinationLevel(destination);
    for (const key of this.#keys) {
      const level = this.#keyLevels[key](event);
      folder = folder === '' ? level : `${folder}/${level}`;
    }
    return folder;
  }

  /** The first level of a destination's folders; empty for the default place. */
  destinationLevel(destination: string | null): string {
    return destination === null ? '' : this.#level(destination);
  }

  /** Times are UTC. Not `event_type` and `team_id`: records have columns of these names, with the exact text. */
  readonly #keyLevels = {
    date: (event) => this.#dateLevelOf(event.receivedAt),
    hour: (event) => `hour=${String(Math.floor(event.receivedAt / 3_600_000) % 24).padStart(2, '0')}`,
    type: (event) => `type=${this.#level(event.type)}`,
    team: (event) => `team=${this.#level(event.team)}`,
  } as const satisfies Record<PartitionKey, (event: Event) => string>;

  #dateLevelOf(ms: number): string {
    const hour = Math.floor(ms / 3_600_000);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#dateLevel = `dt=${new Date(ms).toISOString().slice(0, 10)}`;
    }
    return this.#dateLevel;
  }

  #level(text: string | null): string {
    return text === null ? ABSENT : getOrMakeAtMost(this.#levels, text, () => safeLevel(text), REMEMBERED);
  }
}

/** The destination's level of a folder by `folderOf`; empty if it has none. Only Hive levels have a `=`. */
export function destinationLevelOf(folder: string): string {
  const first = folder.split('/', 1)[0] ?? '';
  return first.includes('=') ? '' : first;
}
