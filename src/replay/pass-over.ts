import { readManifest } from '../archive/manifest.ts';
import type { ArchiveListing } from '../archive/place.ts';
import { SEALED_TYPE } from '../core/sealed-record.ts';
import type { ManifestLine } from '../core/archive-manifest.ts';
import type { Selection } from './selection.ts';

/** True for a file, of that size on disk, that holds nothing of a selection. */
export type PassOver = (file: string, bytes: number) => boolean;

const READ_ALL: PassOver = () => false;

/**
 * Lets a replay of a week out of a year leave most files unopened: the manifest says for each which types and times it
 * holds. A manifest that is not sound, or says another size, is not believed.
 */
export async function passOverBy(listing: ArchiveListing, selection: Selection): Promise<PassOver> {
  const { types, since, until } = selection;
  if (types.length === 0 && since === null && until === null) return READ_ALL;
  const { entries, isSound } = await readManifest(listing);
  if (!isSound) return READ_ALL;
  return (file, bytes) => {
    const entry = entries.get(file);
    return entry !== undefined && entry.bytes === bytes && holdsNothing(entry, selection);
  };
}

function holdsNothing(entry: ManifestLine, { types, since, until }: Selection): boolean {
  if ('claim_check' in entry || entry.first_received_at === null || entry.last_received_at === null)
    return false;
  if (since !== null && Date.parse(entry.last_received_at) < since) return true;
  if (until !== null && Date.parse(entry.first_received_at) >= until) return true;
  const isAsked = (type: string): boolean => types.some((prefix) => type.startsWith(prefix));
  return types.length > 0 && !Object.keys(entry.types).some((type) => type === SEALED_TYPE || isAsked(type));
}
