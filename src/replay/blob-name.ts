import type { Envelope } from '../core/event.ts';
import { decodedOrSame } from '../lib/parsed.ts';

/** What the path of a large event says, by the layout of the service's pipelines and of claim checks. */
export interface BlobName {
  readonly id: string;
  readonly receivedAt: number;
  readonly known: Partial<Envelope>;
}

const NAME = /^(\d{4}-\d\d-\d\d[Tt][^#]{4,}?)#([^#]+)#(.+)\.json(?:\.gz|\.zst)?$/;
/** `2026-11-21T101530.250Z`: without colons, for file systems that refuse them. */
const NO_COLONS = /^(\d{4}-\d\d-\d\d)[Tt](\d\d)(\d\d)(\d\d(?:\.\d+)?)(.*)$/;
/** In our archives, kept events have a day instead of the user. */
const DAY = /^\d{4}-\d\d-\d\d$/;
const ABSENT = '__HIVE_DEFAULT_PARTITION__';

/** Parses `…/{team}/{user}/{rfc3339}#{type}#{key}.json[.gz]`, also with a day instead of the user; null for other names. */
export function parseBlobName(file: string): BlobName | null {
  const levels = file.split('/');
  const match = NAME.exec(levels.at(-1) ?? '');
  if (match === null) return null;
  const [, time = '', type = '', id = ''] = match;
  const receivedAt = Date.parse(time.replace(NO_COLONS, '$1T$2:$3:$4$5'));
  if (Number.isNaN(receivedAt)) return null;
  return {
    id: decodedOrSame(id),
    receivedAt,
    known: {
      type: decodedOrSame(type),
      ...levelOf('team', levels.at(-3)),
      ...levelOf('user', levels.at(-2)),
    },
  };
}

function levelOf(part: 'team' | 'user', level: string | undefined): Partial<Envelope> {
  // A shortened name ends in its hash.
  if (level === undefined || level === ABSENT || level.includes('~') || DAY.test(level)) return {};
  return { [part]: decodedOrSame(level) };
}
