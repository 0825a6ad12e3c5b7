import { ElementScanner } from '../ndjson/elements.ts';
import { LONGEST_ELEMENT } from '../ndjson/shape-text.ts';

/** Takes the exact bytes of some meals; the document is read on when it has resolved. */
export type OnMeals = (meals: readonly Buffer[]) => Promise<void>;

/**
 * The same document, whose meals are handed over as they come by. What is no element is passed over: whoever shapes the
 * document says so.
 */
export async function* eachMeal(document: AsyncIterable<Buffer>, onMeals: OnMeals): AsyncGenerator<Buffer> {
  const meals: Buffer[] = [];
  const scanner = new ElementScanner({
    containers: ['meals', 'data'],
    longest: LONGEST_ELEMENT,
    // A copy: the bytes are a view of a chunk.
    onElement: (bytes) => meals.push(Buffer.from(bytes)),
    onFault: () => undefined,
  });
  const handOver = async (): Promise<void> => {
    if (meals.length > 0) await onMeals(meals.splice(0));
  };
  for await (const chunk of document) {
    scanner.push(chunk);
    await handOver();
    yield chunk;
  }
  scanner.end();
  await handOver();
}
