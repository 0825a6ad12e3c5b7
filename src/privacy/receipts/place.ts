import { join } from 'node:path';
import { MillraceError, messageOf } from '../../core/errors.ts';
import { readIfThere } from '../../lib/durable.ts';
import { openKeyPem } from '../../lib/key-pem.ts';
import type { Opening } from './job.ts';
import { readSigner, type NoteVerifier } from './note.ts';

/** The part of a config that says where the log is. */
interface ReceiptsConfig {
  readonly erasure: { readonly path: string };
  readonly receipts: {
    readonly path: string | null;
    readonly origin: string | null;
    readonly key: string | null;
  };
}

/**
 * What the log is opened with; null when receipts are off.
 * @param makes true to make the key when there is none
 * @throws MillraceError receipts_unusable
 */
export async function receiptsPlace(
  { erasure, receipts }: ReceiptsConfig,
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
