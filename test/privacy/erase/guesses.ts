import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalEvent } from '../../../src/core/event.ts';

type Guessed = Pick<JournalEvent, 'source' | 'id' | 'body'>;

/** Bytes of a hash that are looked for; fewer would stand somewhere by chance. */
const PART = 6;

/** How many of these stand in a journal's files, free pages and logs too. */
function standing(folder: string, guesses: readonly (readonly Buffer[])[]): number {
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  return guesses.filter((parts) => parts.some((part) => files.some((bytes) => bytes.includes(part)))).length;
}

function partsOf(hash: Buffer): Buffer[] {
  return Array.from({ length: hash.length - PART + 1 }, (_, at) => hash.subarray(at, at + PART));
}

/** How many bodies are recognised by guessing the body alone. */
export function guessedByBody(folder: string, events: readonly Guessed[]): number {
  return standing(
    folder,
    events.map(({ body }) => partsOf(createHash('sha256').update(body).digest())),
  );
}

/** How many bodies are recognised by guessing the body with the id of its delivery, and how it is noted. */
export function guessedById(folder: string, events: readonly Guessed[]): number {
  return standing(
    folder,
    events.map(({ source, id, body }) => {
      const place = createHash('sha256').update(`${source.length}:${source}${id}`).digest();
      const rest =
        place.toString('latin1', 12) + createHash('sha256').update(body).digest().toString('latin1');
      return [createHash('sha256').update(rest).digest().subarray(0, 8)];
    }),
  );
}
