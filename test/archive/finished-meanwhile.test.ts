import { describe, expect, it } from 'vitest';
import type { ArchivePlace } from '../../src/archive/place.ts';
import { listArchive, Places } from '../../src/archive/places.ts';
import { readListed } from '../../src/archive/read.ts';
import { parseRecord } from '../../src/core/archive-record.ts';

import { listPath } from '../../src/replay/list.ts';
import { FileReader } from '../../src/replay/read-file.ts';
import { createValidator, DEFAULT_ENVELOPE } from '../../src/validate/envelope.ts';
import { deliver, filesSink, signal, tempFolder } from '../sinks/support.ts';

const EVENTS = 3;
const ALL = { types: [], teams: [], users: [], since: null, until: null };
const validate = createValidator({ ...DEFAULT_ENVELOPE, userIds: 'text', require: [] });

class OnePlace extends Places {
  readonly #place: ArchivePlace;

  constructor(place: ArchivePlace) {
    super();
    this.#place = place;
  }

  override at(): ArchivePlace {
    return this.#place;
  }
}

/** An archive with one part, and a place of it that finishes the part when it is asked for a file: just after `moment` is looked at. */
async function finishing(moment: 'part' | 'last name') {
  const path = tempFolder();
  const { sink } = filesSink(path);
  await sink.open();
  await sink.send(deliver(1, EVENTS), signal);
  const listing = await listArchive(path);
  const { place, parts } = listing;
  const [part = ''] = parts;
  let isOpen = true;
  const finish = async (): Promise<void> => {
    if (isOpen) await sink.close(signal);
    isOpen = false;
  };
  const watched: ArchivePlace = {
    root: place.root,
    list: () => place.list(),
    stat: async (file) => {
      const state = await place.stat(file);
      if (moment === 'part' ? file === part : file !== part && file.endsWith('.zst')) await finish();
      return state;
    },
    moved: (file) => place.moved(file),
    chunks: (file) => place.chunks(file),
    expect: (files) => place.expect(files),
    close: () => place.close(),
  };
  return { path, listing: { ...listing, place: watched }, watched };
}

describe.each(['part', 'last name'] as const)(
  'a part that is finished just after its %s was looked at',
  (moment) => {
    const all = deliver(1, EVENTS).map(({ event }) => event.id);

    it('is read, once', async () => {
      const { listing } = await finishing(moment);
      const found: string[] = [];
      for await (const items of readListed(listing, parseRecord, { parts: true }))
        for (const item of items) found.push(item.kind === 'record' ? item.record.id : item.reason);
      expect(found).toEqual(all);
    });

    it('is replayed, once', async () => {
      const { path, watched } = await finishing(moment);
      const options = { places: new Places(), selection: ALL, onPassedOver: () => undefined };
      const units = await Array.fromAsync(listPath(path, options));
      const reader = new FileReader({ places: new OnePlace(watched), selection: ALL, validate });
      const found: string[] = [];
      for (const unit of units)
        for await (const step of unit.kind === 'file' ? reader.read(unit, 0) : [])
          found.push(
            ...step.problems.map(({ reason }) => reason),
            ...step.found.map(({ event }) => event.id),
          );
      expect(found).toEqual(all);
    });
  },
);
