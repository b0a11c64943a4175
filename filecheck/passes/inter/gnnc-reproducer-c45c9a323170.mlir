// gnnc reproducer: pass `insert-all-reduce` raised TypeError: object of type 'IRUses' has no len()
// RUN: gnn-opt %s -p "insert-all-reduce,verify-sets"

builtin.module {
  func.func @added(%K: !inter.set<K>, %N: !inter.set<N, rank: K>, %H: !inter.set<H, rank: K>, %x: !inter.rows<N, 4xf32>, %y: !inter.rows<H, 4xf32>) -> !inter.rows<unit, 4xf32> {
    %a = inter.reduce sum %x over %N along () : !inter.rows<unit, 4xf32>
    %b = inter.reduce sum %y over %H along () : !inter.rows<unit, 4xf32>
    %c = inter.add %a, %b : !inter.rows<unit, 4xf32>
    func.return %c : !inter.rows<unit, 4xf32>
  }
}
