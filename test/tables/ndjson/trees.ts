import { gen, none } from 'stream-chain/core';
import { parser } from 'stream-json/parser.js';

/** A JSON value of which nothing is lost: numbers as they were written, members in order, repeated ones too. */
export type Tree =
  | { readonly kind: 'object'; readonly members: readonly (readonly [key: string, value: Tree])[] }
  | { readonly kind: 'array'; readonly items: readonly Tree[] }
  | { readonly kind: 'string' | 'number' | 'literal'; readonly text: string };

interface Token {
  readonly name: string;
  readonly value?: unknown;
}

/** The values of a text, one after the other, as stream-json reads them. */
export async function treesOf(text: string): Promise<Tree[]> {
  const tokens: Token[] = [];
  const read = gen(parser({ streamValues: false, jsonStreaming: true }));
  // `none` ends the text; the types know of strings only.
  for (const input of [text, none as unknown as string])
    for await (const token of read(input)) tokens.push(token);
  const rest = tokens.values();
  const trees: Tree[] = [];
  for (let next = rest.next(); next.done !== true; next = rest.next()) trees.push(build(next.value, rest));
  return trees;
}

function build({ name, value }: Token, rest: Iterator<Token>): Tree {
  switch (name) {
    case 'startObject': {
      const members: [string, Tree][] = [];
      for (let key = take(rest); key.name !== 'endObject'; key = take(rest))
        members.push([String(key.value), build(take(rest), rest)]);
      return { kind: 'object', members };
    }
    case 'startArray': {
      const items: Tree[] = [];
      for (let item = take(rest); item.name !== 'endArray'; item = take(rest)) items.push(build(item, rest));
      return { kind: 'array', items };
    }
    case 'stringValue':
      return { kind: 'string', text: String(value) };
    case 'numberValue':
      return { kind: 'number', text: String(value) };
    default:
      return { kind: 'literal', text: String(value) };
  }
}

function take(tokens: Iterator<Token>): Token {
  const { done, value } = tokens.next();
  if (done === true) throw new Error('the tokens end inside a value');
  return value;
}
