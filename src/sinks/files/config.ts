import { z } from 'zod';
import type { OptionsSchema, SinkDescription } from '../../core/sink.ts';
import { messageOf } from '../../core/errors.ts';
import { parseOptionsWith, writtenSchema } from '../../lib/parse-options.ts';
import { duration, size } from '../../lib/unit-schemas.ts';
import { parseBytes, parseDuration } from '../../lib/units.ts';
import { parseMasterKey } from '../../seal/master-key.ts';

const MINIMUM_BYTES = 1024;
const MINIMUM_AGE = 1000;

const masterKey = z.string().transform((text, context) => {
  try {
    return parseMasterKey(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: messageOf(error) });
    return z.NEVER;
  }
});

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
  /** Seals every record with a key of its user's own, so that destroying the key erases the user. */
  encrypt: z
    .strictObject({
      per: z.literal('user').default('user'),
      /** Folder of the keys; made if missing. Not inside the archive: one is of no use without the other. */
      store: z.string().min(1),
      /** 32 bytes in base64; it wraps the keys in the store. */
      masterKey,
    })
    .optional(),
});

/** What the files sink works with: sizes in bytes, times in milliseconds. */
export type FilesOptions = z.output<typeof schema>;

export type PartitionKey = FilesOptions['partitionBy'][number];

/** @throws Error that names the key */
export function parseOptions(options: unknown): FilesOptions {
  return parseOptionsWith(schema, options);
}

/** Of the options as written. */
export function optionsSchema(): OptionsSchema {
  return writtenSchema(schema);
}

/** An archive; where it is sealed, nothing of it can be read by who has no key, so it keeps no claims. */
export function describe({ path, encrypt }: Readonly<Record<string, unknown>>): SinkDescription {
  const folders = typeof path === 'string' ? [{ path, option: 'path', erase: true }] : [];
  const archive = typeof path === 'string' ? { archive: path } : {};
  const { store, ...sealing } = (encrypt ?? {}) as { store?: unknown; masterKey?: unknown };
  if (typeof store !== 'string')
    return { folders, ...archive, keepsClaims: encrypt === undefined, openFiles: OPEN_FILES };
  return {
    folders: [...folders, { path: store, option: 'encrypt.store', erase: false }],
    ...archive,
    keys: { store, option: 'encrypt', masterKey: () => parseMasterKey(String(sealing.masterKey)) },
    openFiles: OPEN_FILES,
  };
}

/** Part files that are open, and what is opened beside them. */
const OPEN_FILES = 80;
