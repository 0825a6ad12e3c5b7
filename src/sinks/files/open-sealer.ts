import type { SinkContext } from '../../core/sink.ts';
import { Sealer } from '../../privacy/seal/sealer.ts';
import type { FilesOptions } from './config.ts';

/** Null for an archive that is not sealed. @throws MillraceError keys_unusable, keys_in_use or master_key_wrong */
export async function openSealer(
  { encrypt }: FilesOptions,
  { proof }: Pick<SinkContext, 'proof'>,
): Promise<Sealer | null> {
  if (encrypt === undefined) return null;
  const ledger = (await proof?.())?.ledger ?? null;
  return Sealer.open(encrypt.store, encrypt.masterKey, ledger);
}
