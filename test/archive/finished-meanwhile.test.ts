import { describe, expect, it, vi } from 'vitest';
import { listArchive, Places } from '../../src/archive/places.ts';
import { readListed } from '../../src/archive/read.ts';
import { parseRecord } from '../../src/core/archive-record.ts';
import { idsOf, readerOf, readUnits, unitsOf } from '../replay/support.ts';
import { deliver, filesSink, signal, tempFolder } from '../sinks/support.ts';

const BATCH = deliver(1, 3);

/** An archive with one part, and its listing, in which the part is finished just after `moment` is looked at. */
async function finishing(moment: 'part' | 'last name') {
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await sink.send(BATCH, signal);
  const listing = await listArchive(path);
  const { place, parts } = listing;
  let isOpen = true;
  const stat = place.stat.bind(place);
  place.stat = async (file) => {
    const state = await stat(file);
    const isMoment = moment === 'part' ? file === parts[0] : file !== parts[0] && file.endsWith('.zst');
    if (isMoment && isOpen) {
      isOpen = false;
      await sink.close(signal);
    }
    return state;
  };
  return { path, listing };
}

describe.each(['part', 'last name'] as const)(
  'a part that is finished just after its %s was looked at',
  (moment) => {
    const all = BATCH.map(({ event }) => event.id);

    it('is read, once', async () => {
      const { listing } = await finishing(moment);
      const found: string[] = [];
      for await (const items of readListed(listing, parseRecord, { parts: true }))
        for (const item of items) found.push(item.kind === 'record' ? item.record.id : item.reason);
      expect(found).toEqual(all);
    });

    it('is replayed, once', async () => {
      const { path, listing } = await finishing(moment);
      const units = await unitsOf(path);
      const places = new Places();
      vi.spyOn(places, 'at').mockReturnValue(listing.place);
      expect(idsOf(await readUnits(units, readerOf({ places })))).toEqual(all);
    });
  },
);
