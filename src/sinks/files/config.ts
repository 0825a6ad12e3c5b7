import { z } from 'zod';
import type { SinkDescription } from '../../core/sink.ts';
import { messageOf } from '../../core/errors.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { bytes, choice, duration } from '../../lib/fields.ts';
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
  path: z
    .string()
    .min(1)
    .describe('Folder of the archive; created if missing. Relative to the working directory.'),
  compress: choice(['gzip', 'zstd', 'none'], 'gzip', 'How closed files are compressed.'),
  rotate: z
    .strictObject({
      bytes: bytes('128MiB', 'A file with this many bytes (uncompressed) is closed and compressed.', {
        min: MINIMUM_BYTES,
      }),
      every: duration('1h', 'A file this old is closed and compressed.', { min: MINIMUM_AGE }),
    })
    .prefault({}),
  partitionBy: z
    .array(z.enum(['date', 'hour', 'type', 'team']))
    .refine((keys) => new Set(keys).size === keys.length, 'names a key twice')
    .default(['date'])
    .describe(
      'Hive-style folders, outermost first: `dt=`, `hour=` (UTC, by time of receipt), `type=`, `team=`.',
    ),
  encrypt: z
    .strictObject({
      per: z.literal('user').default('user').describe('What gets its own key.'),
      store: z
        .string()
        .min(1)
        .describe(
          'Folder of the keys; created if missing. It must not be inside the archive: one is useless without the other.',
        ),
      masterKey: masterKey.describe('32 bytes in base64 that wrap the keys in the store.'),
    })
    .optional()
    .describe(
      "Seals every record with a key of its user's own, so that destroying the key erases the user; see below.",
    ),
});

export const { parseOptions, optionsSchema } = optionsOf(schema);

/** What the files sink works with: sizes in bytes, times in milliseconds. */
export type FilesOptions = z.output<typeof schema>;

export type PartitionKey = FilesOptions['partitionBy'][number];

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
