import { z } from 'zod';
import { parseOptionsWith } from '../../lib/parse-options.ts';
import { duration, size } from '../../lib/unit-schemas.ts';
import { parseBytes, parseDuration } from '../../lib/units.ts';

const MINIMUM_BYTES = 1024;
const MINIMUM_AGE = 1000;

const schema = z.strictObject({
  /** Folder of the archive; made if missing. Relative to where the process was started. */
  path: z.string().min(1),
  /** How finished files are compressed. */
  compress: z.enum(['gzip', 'zstd', 'none']).default('gzip'),
  /** A file is finished once it holds this many bytes before compression, or is this old, whichever comes first. */
  rotate: z
    .strictObject({
      bytes: size.pipe(z.number().min(MINIMUM_BYTES)).default(parseBytes('128MiB')),
      every: duration.pipe(z.number().min(MINIMUM_AGE)).default(parseDuration('1h')),
    })
    .prefault({}),
  /** Hive-style folders, outermost first: `dt=`, `hour=` (UTC, by time of receipt), `type=`, `team=`. */
  partitionBy: z
    .array(z.enum(['date', 'hour', 'type', 'team']))
    .refine((keys) => new Set(keys).size === keys.length, 'names a key twice')
    .default(['date']),
});

/** What the files sink works with: sizes in bytes, times in milliseconds. */
export type FilesOptions = z.output<typeof schema>;

export type PartitionKey = FilesOptions['partitionBy'][number];

/** @throws Error that names the key */
export function parseOptions(options: unknown): FilesOptions {
  return parseOptionsWith(schema, options);
}
