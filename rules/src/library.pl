% Predicates that every program has, unless it defines them itself.
','(A,B) :- call(A), call(B).
;(C,E) :- nonvar(C), C = (I->T), !, ( call(I) -> call(T) ; call(E) ).
;(C,E) :- nonvar(C), C = *->(I,T), !, ( call(I) *-> call(T) ; call(E) ).
;(A,_) :- call(A).
;(_,B) :- call(B).
->(I,T) :- ( call(I) -> call(T) ).
*->(I,T) :- call(I), call(T).
\+(G) :- \+ call(G).
once(G) :- once(call(G)).
ignore(G) :- ( call(G) -> true ; true ).
:(_,G) :- call(G).
not(G) :- \+ call(G).
apply(G,As) :- G =.. L, append(L,As,L1), H =.. L1, call(H).
=(A,B) :- A = B.
is(A,B) :- A is B.
<(A,B) :- A < B.
>(A,B) :- A > B.
=<(A,B) :- A =< B.
>=(A,B) :- A >= B.
=:=(A,B) :- A =:= B.
=\=(A,B) :- A =\= B.
repeat.
repeat :- repeat.
append([],L,L).
append([H|T],L,[H|R]) :- append(T,L,R).
append(Ls,L) :- foldl_append(Ls,L).
foldl_append([],[]).
foldl_append([L|Ls],R) :- append(L,R0,R), foldl_append(Ls,R0).
member(X,[Y|Ys]) :- member_(Ys,X,Y).
member_(_,X,X).
member_([Y|Ys],X,_) :- member_(Ys,X,Y).
memberchk(X,L) :- once(member(X,L)).
select(X,[X|T],T).
select(X,[H|T],[H|R]) :- select(X,T,R).
selectchk(X,L,R) :- once(select(X,L,R)).
select(X,Xs,Y,Ys) :- select4(Xs,X,Y,Ys).
select4([X|T],X,Y,[Y|T]).
select4([H|T],X,Y,[H|T2]) :- select4(T,X,Y,T2).
exclude(_,[],[]).
exclude(G,[X|Xs],R) :- ( call(G,X) -> R = R1 ; R = [X|R1] ), exclude(G,Xs,R1).
include(_,[],[]).
include(G,[X|Xs],R) :- ( call(G,X) -> R = [X|R1] ; R = R1 ), include(G,Xs,R1).
partition(_,[],[],[]).
partition(G,[X|Xs],I,E) :- ( call(G,X) -> I = [X|I1], E = E1 ; I = I1, E = [X|E1] ), partition(G,Xs,I1,E1).
maplist(_,[]).
maplist(G,[A|As]) :- call(G,A), maplist(G,As).
maplist(_,[],[]).
maplist(G,[A|As],[B|Bs]) :- call(G,A,B), maplist(G,As,Bs).
maplist(_,[],[],[]).
maplist(G,[A|As],[B|Bs],[C|Cs]) :- call(G,A,B,C), maplist(G,As,Bs,Cs).
foldl(G,L,A0,A) :- foldl_(L,G,A0,A).
foldl_([],_,A,A).
foldl_([X|Xs],G,A0,A) :- call(G,X,A0,A1), foldl_(Xs,G,A1,A).
reverse(L,R) :- reverse_(L,[],R).
reverse_([],R,R).
reverse_([H|T],A,R) :- reverse_(T,[H|A],R).
nth0(I,L,E) :- nth_(L,0,I,E).
nth1(I,L,E) :- nth_(L,1,I,E).
nth_(L,B,I,E) :- integer(I), !, S is I-B, S >= 0, skip_(S,L,E).
nth_([H|T],B,I,E) :- var(I), nth_v(T,H,B,I,E).
nth_v(_,H,B,B,H).
nth_v([H|T],_,B,I,E) :- B1 is B+1, nth_v(T,H,B1,I,E).
skip_(0,[E|_],E) :- !.
skip_(N,[_|T],E) :- N1 is N-1, skip_(N1,T,E).
last([X],X) :- !.
last([_|T],X) :- last(T,X).
delete([],_,[]).
delete([H|T],X,R) :- ( H \= X -> R = [H|R1] ; R = R1 ), delete(T,X,R1).
subtract([],_,[]).
subtract([H|T],L,R) :- ( memberchk(H,L) -> R = R1 ; R = [H|R1] ), subtract(T,L,R1).
intersection([],_,[]).
intersection([H|T],L,R) :- ( memberchk(H,L) -> R = [H|R1] ; R = R1 ), intersection(T,L,R1).
union([],L,L).
union([H|T],L,R) :- ( memberchk(H,L) -> R = R1 ; R = [H|R1] ), union(T,L,R1).
list_to_set(L,S) :- list_to_set_(L,[],S).
list_to_set_([],_,[]).
list_to_set_([H|T],Seen,R) :- ( seen_(H,Seen) -> R = R1 ; R = [H|R1] ), list_to_set_(T,[H|Seen],R1).
seen_(X,[Y|Ys]) :- ( X == Y -> true ; seen_(X,Ys) ).
permutation([],[]).
permutation(L,[H|T]) :- select(H,L,R), permutation(R,T).
sum_list(L,S) :- sum_list_(L,0,S).
sum_list_([],S,S).
sum_list_([H|T],A,S) :- A1 is A+H, sum_list_(T,A1,S).
sumlist(L,S) :- sum_list(L,S).
max_list([H|T],M) :- max_list_(T,H,M).
max_list_([],M,M).
max_list_([H|T],A,M) :- A1 is max(A,H), max_list_(T,A1,M).
min_list([H|T],M) :- min_list_(T,H,M).
min_list_([],M,M).
min_list_([H|T],A,M) :- A1 is min(A,H), min_list_(T,A1,M).
numlist(L,H,[]) :- L > H, !.
numlist(L,H,[L|T]) :- L1 is L+1, numlist(L1,H,T).
between(L,H,X) :- integer(X), !, X >= L, ( H == inf -> true ; X =< H ).
between(L,H,X) :- ( H == inf -> true ; L =< H ), between_(L,H,X).
between_(L,H,X) :- L == H, !, X = L.
between_(L,_,L).
between_(L,H,X) :- L1 is L+1, between_(L1,H,X).
length(L,N) :- '$length'(L,K,T), ( T == [] -> N = K ; var(T), ( integer(N) -> R is N-K, R >= 0, '$fresh_list'(R,T) ; var(N), length_(T,K,N) ) ).
length_([],N,N).
length_([_|T],K,N) :- K1 is K+1, length_(T,K1,N).
forall(C,A) :- \+ ( call(C), \+ call(A) ).
findall(T,G,L,R) :- findall(T,G,L0), append(L0,R,L).
aggregate_all(count,G,C) :- !, findall(x,G,L), length(L,C).
aggregate_all(sum(E),G,S) :- !, findall(E,G,L), sum_list(L,S).
aggregate_all(max(E),G,M) :- !, findall(E,G,L), max_list(L,M).
aggregate_all(min(E),G,M) :- !, findall(E,G,L), min_list(L,M).
aggregate_all(bag(E),G,L) :- !, findall(E,G,L).
aggregate_all(set(E),G,S) :- findall(E,G,L), sort(L,S).
bagof(T,G,L) :- '$free'(T^G,Vs,G1), ( Vs == [] -> findall(T,G1,L), L \== [] ; W =.. [v|Vs], findall(W-T,G1,Ps), Ps \== [], keysort(Ps,Sorted), '$groups'(Sorted,Groups), member(W-L,Groups) ).
setof(T,G,S) :- bagof(T,G,L), sort(L,S).
'$groups'([],[]).
'$groups'([K-V|R],[K-[V|Vs]|Gs]) :- '$group'(R,K,Vs,Rest), '$groups'(Rest,Gs).
'$group'([K2-V|R],K,[V|Vs],Rest) :- K2 == K, !, '$group'(R,K,Vs,Rest).
'$group'(R,_,[],R).
pairs_keys_values([],[],[]).
pairs_keys_values([K-V|T],[K|Ks],[V|Vs]) :- pairs_keys_values(T,Ks,Vs).
pairs_keys([],[]).
pairs_keys([K-_|T],[K|Ks]) :- pairs_keys(T,Ks).
pairs_values([],[]).
pairs_values([_-V|T],[V|Vs]) :- pairs_values(T,Vs).
