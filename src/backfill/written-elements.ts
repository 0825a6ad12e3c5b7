import { ElementScanner } from '../ndjson/elements.ts';

/** The elements of a document's list, each as it was written. */
export function elementsOf(document: string, list: string): string[] {
  const elements: string[] = [];
  const scanner = new ElementScanner({
    containers: [list],
    longest: Infinity,
    onElement: (bytes) => elements.push(bytes.toString()),
    onFault: () => undefined,
  });
  scanner.push(Buffer.from(document));
  scanner.end();
  return elements;
}
