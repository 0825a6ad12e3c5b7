import { parseAst } from 'rolldown/parseAst';

/** One small change of a source file: `text` instead of what stands from `start` to `end`. */
export interface Change {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

type Child = 'left' | 'right' | 'expression' | 'callee' | 'argument';
/** A node of the syntax tree, as far as it is looked at here. */
interface Node extends Partial<Record<Child, Node | null>> {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly operator?: string;
  readonly value?: unknown;
}

const PAIRS = ['=== !==', '&& ||', '< <=', '> >='].map((pair) => pair.split(' '));
const OPPOSITES = Object.fromEntries(
  PAIRS.flatMap(([one = '', other = '']) => [
    [one, other],
    [other, one],
  ]),
);
/** Only before a number: `+` also joins texts. */
const SIGNS: Readonly<Record<string, string>> = { '+': '-', '-': '+' };
/** These have a value inside; every other node whose name begins with TS is a type. */
const NO_TYPES = new Set(['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']);

/** All changes that can be made in a file. None is in a comment, a text, an import or a type. */
export function changesOf(source: string): Change[] {
  const changes: Change[] = [];
  visit(parseAst(source, { lang: 'ts' }), (node) => changes.push(...changesAt(node, source)));
  return changes;
}

function visit(node: unknown, see: (node: Node) => void): void {
  if (Array.isArray(node)) for (const each of node) visit(each, see);
  else if (isNode(node)) {
    see(node);
    for (const child of Object.values(node)) visit(child, see);
  }
}

function isNode(value: unknown): value is Node {
  const { type } = Object(value) as Partial<Node>;
  if (typeof type !== 'string' || type === 'ImportDeclaration') return false;
  return !type.startsWith('TS') || NO_TYPES.has(type);
}

function changesAt(node: Node, source: string): Change[] {
  const { type, start, end, operator = '', value, left, right, argument, expression } = node;
  if (['BinaryExpression', 'LogicalExpression'].includes(type) && left && right) {
    const text = OPPOSITES[operator] ?? (typeof right.value === 'number' ? SIGNS[operator] : undefined);
    const at = source.indexOf(operator, left.end);
    return text === undefined ? [] : [{ start: at, end: at + operator.length, text }];
  }
  if (type === 'Literal' && typeof value === 'boolean') return [{ start, end, text: String(!value) }];
  if (type === 'ReturnStatement' && argument)
    return [{ start: argument.start, end: argument.end, text: 'undefined' }];
  const awaited = expression?.type === 'AwaitExpression' ? expression.argument : expression;
  const isCall = awaited?.type === 'CallExpression' && awaited.callee?.type !== 'Super';
  return type === 'ExpressionStatement' && isCall ? [{ start, end, text: ';' }] : [];
}
