import { hash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { ConfigAround, SinkDescription, SinkFolder } from '../../core/sink.ts';
import { COMPRESSIONS } from '../../core/compression.ts';
import { isStoreUrl, parsePlace } from '../../core/place.ts';
import { detailOf } from '../../core/errors.ts';
import { isRecord } from '../../lib/parsed.ts';
import { optionsOf } from '../../lib/parse-options.ts';
import { bytes, choice, duration, NOT_EMPTY, optionalText } from '../../lib/fields.ts';
import { parseMasterKey } from '../../privacy/seal/master-key.ts';
import { packagesOf } from '../../storage/packages.ts';

const MINIMUM_BYTES = 1024;
const MINIMUM_AGE = 1000;

const masterKey = z.string().transform((text, context) => {
  try {
    return parseMasterKey(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: detailOf(error) });
    return z.NEVER;
  }
});

const schema = z.strictObject({
  path: z
    .string()
    .min(1)
    .superRefine((path, context) => {
      try {
        parsePlace(path);
      } catch (error) {
        context.addIssue({ code: 'custom', message: detailOf(error) });
      }
    })
    .describe(
      'Folder of the archive, created if missing, relative to the working directory; or a place in an object store: `s3://bucket/prefix`, `azblob://container/prefix`, `gs://bucket/prefix`.',
    ),
  spool: optionalText(
    'Only for a store. Folder in which files are open until they are uploaded; default: `spool` beside the journal. `none` uploads each batch as a small object before it counts, without a disk.',
    NOT_EMPTY,
  ),
  compress: choice(COMPRESSIONS, 'gzip', 'How closed files are compressed.'),
  rotate: z
    .strictObject({
      bytes: bytes('128MiB', 'A file with this many bytes (uncompressed) is closed and compressed.', {
        min: MINIMUM_BYTES,
      }),
      every: duration('1h', 'A file this old is closed and compressed; in a store the default is 5m.', {
        min: MINIMUM_AGE,
      }),
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

const options = optionsOf(schema);
export const { optionsSchema } = options;

/** Sizes in bytes, times in milliseconds. */
export type FilesOptions = z.output<typeof schema>;

/** @throws OptionsError, or an Error that names the key */
export function parseOptions(written: unknown, around?: ConfigAround): FilesOptions {
  const parsed = options.parseOptions(written);
  const { path, spool, rotate } = parsed;
  if (!isStoreUrl(path)) {
    if (spool === null) return parsed;
    throw new Error('spool: is only for a path in an object store, such as s3://bucket/prefix');
  }
  const every = isRecord(written) && isRecord(written['rotate']) && 'every' in written['rotate'];
  return {
    ...parsed,
    // Messages append names of objects.
    path: path.replace(/\/+$/, ''),
    spool: spoolOf(path, spool, around),
    rotate: every ? rotate : { ...rotate, every: STORE_AGE },
  };
}

/** Each store has its own folder in the configured one, so that parts never go to another store. Null for none. */
function spoolOf(path: string, spool: unknown, around: ConfigAround | undefined): string | null {
  const parent = typeof spool === 'string' ? spool : (around?.spool ?? null);
  if (parent === null || parent === NO_SPOOL) return null;
  return join(parent, hash('sha256', path.replace(/\/+$/, ''), 'hex').slice(0, 12));
}

/** Also for a path with a `${…}` that is not resolved. */
function isStore(path: string): boolean {
  return path.includes('${') ? path.includes('://') : isStoreUrl(path);
}

const NO_SPOOL = 'none';
const STORE_AGE = 300_000;

export type PartitionKey = FilesOptions['partitionBy'][number];

export function describe(
  { path, spool, encrypt }: Readonly<Record<string, unknown>>,
  around?: ConfigAround,
): SinkDescription {
  const { store, masterKey: key } = (encrypt ?? {}) as { store?: unknown; masterKey?: unknown };
  const { folders, ...place } = typeof path === 'string' ? placeOf(path, spool, around) : { folders: [] };
  const common = { ...place, folders, openFiles: OPEN_FILES };
  // A sealed archive keeps no claims: the reader of a pointer has no key.
  if (typeof store !== 'string') return { ...common, keepsClaims: encrypt === undefined };
  return {
    ...common,
    folders: [...folders, { path: store, option: 'encrypt.store', erase: false }],
    keys: { store, option: 'encrypt', masterKey: () => parseMasterKey(String(key)) },
  };
}

/** The members of a description that depend on the path. */
function placeOf(path: string, spool: unknown, around: ConfigAround | undefined) {
  const packages = path.includes('${') ? [] : packagesOf(path);
  const archive = { archive: path, packages };
  if (!isStore(path)) return { ...archive, folders: [{ path, option: 'path', erase: true }] };
  const folder = spoolOf(path, spool, around);
  const folders: SinkFolder[] =
    folder === null ? [] : [{ path: folder, option: 'spool', erase: true, isSpool: true }];
  const reason = 'what is in the spool is confirmed when it is uploaded, minutes later';
  const isNamed = typeof spool === 'string' && spool !== NO_SPOOL;
  return { ...archive, folders, ...(isNamed ? { needsJournal: { option: 'spool', reason } } : {}) };
}

/** Open part files, and files opened beside them. */
const OPEN_FILES = 80;
