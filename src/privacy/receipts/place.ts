import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { readIfThere } from '../../lib/durable.ts';
import { openKeyPem } from '../../lib/key-pem.ts';
import type { Opening } from './job.ts';
import { readSigner, type NoteVerifier } from './note.ts';

/** Where the log lies, as the config says it. */
interface Place {
  readonly erasure: { readonly path: string };
  readonly receipts: {
    readonly path: string | null;
    readonly origin: string | null;
    readonly key: string | null;
  };
}

/**
 * What the log is opened with. Null where receipts are off.
 * @param makes its key, for its owner only, where there is none
 * @throws MillraceError receipts_unusable
 */
export async function receiptsPlace(
  { erasure, receipts }: Place,
  makes = true,
): Promise<(Opening & { readonly verifier: NoteVerifier }) | null> {
  const { path: folder, origin } = receipts;
  if (folder === null || origin === null) return null;
  const file = receipts.key ?? join(erasure.path, 'receipts.key');
  try {
    const pem = makes ? await openKeyPem(file) : readIfThere(file);
    if (pem === null) throw new Error('is not there');
    return { folder, origin, pem, verifier: readSigner(origin, pem) };
  } catch (error) {
    throw new MillraceError('receipts_unusable', `${file}: ${messageOf(error)}`, { cause: error });
  }
}
